"""The folder of copies has a limit: what was used least recently makes room, and what a process uses now is never removed.

Each address has a folder in `uses` with a file that says when it was used last, and one file for each process that uses it, which
that process keeps locked until it ends. While copies are removed, one lock keeps other processes from beginning to use them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rldk.core.errors import UsageError
from rldk.core.files import write_text
from rldk.log.lock import lock, release
from rldk.storage.places import ARCHIVES, SCHEMES, cache_folder, copied_files

__all__ = ["DEFAULT_LIMIT", "cache_limit", "make_room", "parse_size", "set_cache_limit", "use"]

DEFAULT_LIMIT = 20 * 10**9
"""Bytes of all copies together."""

_VARIABLE = "RLDK_CACHE_SIZE"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)
_WAIT = 60.0
_OWN = frozenset({"rldk_acks.json", ".rldk"})
"""What users and commands write beside copies: it is not a copy of anything."""

_TRACKED = {"wandb": ("history.jsonl", "config.json"), "mlflow": ("history.jsonl", "config.json")}
_set_limit: int | None = None
_held: dict[Path, int] = {}


def parse_size(text: str) -> int:
    """`20GB`, `500 MB` or a number of bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"Expected a size such as 20GB or 500MB, got {text!r}.")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def set_cache_limit(text: str) -> None:
    """Set the limit, as the settings of a project do; the environment wins."""
    global _set_limit
    _set_limit = parse_size(text)


def cache_limit() -> int:
    """The most bytes that all copies may take: `RLDK_CACHE_SIZE`, else `cache_size` of rldk.toml, else 20 GB."""
    given = os.environ.get(_VARIABLE)
    if given:
        try:
            return parse_size(given)
        except UsageError as error:
            raise UsageError(f"{_VARIABLE}: {error}") from None
    return DEFAULT_LIMIT if _set_limit is None else _set_limit


def use(base: Path) -> None:
    """Say that this process uses the copies in a folder, or one copy, until it ends: call it before looking at them."""
    folder = _uses_of(base)
    write_text(folder / "last", str(base))
    if folder not in _held:
        handle = os.open(folder / f"{os.getpid()}.held", os.O_CREAT | os.O_RDWR)
        lock(handle)
        _held[folder] = handle
    with _cache_lock():
        pass  # whoever removes copies now has not seen that these are in use: wait until it is done


def make_room(needed: int = 0) -> int:
    """Remove the copies that were used least recently until there is room for so many bytes; gives the bytes removed.

    What is in use stays, even if it takes more than the limit.
    """
    limit, removed = cache_limit(), 0
    with _cache_lock() as alone:
        if not alone:
            return 0
        over = _size(cache_folder()) + needed - limit
        if over <= 0:
            return 0
        places = sorted(_places(), key=lambda place: place.used)
        for number, place in enumerate(places):
            if removed >= over:
                break
            if not place.busy:
                spared = [other.base for other in places if other.busy or other in places[number + 1 :]]
                removed += _remove(place.base, spared)
                shutil.rmtree(place.folder, ignore_errors=True)
    return removed


@dataclass(frozen=True, slots=True)
class _Place:
    """An address that was used: where its copies lie, when it was used last, and whether a process uses it now."""

    folder: Path
    base: Path
    used: float
    busy: bool


def _uses() -> Path:
    return cache_folder() / "uses"


def _uses_of(base: Path) -> Path:
    return _uses() / hashlib.sha256(str(base).encode()).hexdigest()[:20]


def _places() -> Iterator[_Place]:
    for folder in _uses().iterdir():
        last = folder / "last"
        if last.is_file():
            yield _Place(folder, Path(last.read_text(encoding="utf-8")), last.stat().st_mtime, _is_busy(folder))


def _is_busy(folder: Path) -> bool:
    """Whether a process holds one of the files; those of processes that have ended are removed."""
    busy = False
    for held in folder.glob("*.held"):
        handle = os.open(held, os.O_RDWR)
        if lock(handle):
            held.unlink(missing_ok=True)
            release(handle)
        else:
            os.close(handle)
            busy = True
    return busy


def _remove(base: Path, spared: list[Path]) -> int:
    """Remove the copies below a folder, or one copy, but not those that another address needs; gives the bytes removed."""
    scheme = base.relative_to(cache_folder()).parts[0]
    if scheme == ARCHIVES:
        return _remove_archive(base)
    removed = 0
    for file in _copies(scheme, base):
        if any(file == other or other in file.parents for other in spared):
            continue
        try:
            size = file.stat().st_size
            file.unlink()
        except OSError:
            continue  # gone already
        removed += size
        _remove_empty(file.parent)
    return removed


def _copies(scheme: str, base: Path) -> Iterator[Path]:
    """The copies of an address: only what rldk has fetched, and nothing that was written beside it."""
    if scheme in _TRACKED:
        yield from (file for name in _TRACKED[scheme] for file in base.rglob(name))
    elif scheme in SCHEMES:
        yield from (file for file in set(copied_files(scheme)) if file == base or base in file.parents)


def _remove_archive(folder: Path) -> int:
    """An archive is removed as a whole or not at all: a part of it would look like all of it."""
    if not folder.is_dir() or any(file.name in _OWN for file in folder.rglob("*")):
        return 0
    size = _size(folder)
    gone = folder.with_name(f".{folder.name}.{os.getpid()}.gone")
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    return size


def _remove_empty(folder: Path) -> None:
    while folder != cache_folder():
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size  # noqa: PTH116, PTH118  quick, for very many files
            except OSError:
                continue
    return total


@contextmanager
def _cache_lock() -> Iterator[bool]:
    """Hold the lock of the folder; `False` where another process does not give it back within a minute."""
    _uses().mkdir(parents=True, exist_ok=True)
    handle = os.open(_uses() / "lock", os.O_CREAT | os.O_RDWR)
    until = time.monotonic() + _WAIT
    held = lock(handle)
    while not held and time.monotonic() < until:
        time.sleep(0.02)
        held = lock(handle)
    try:
        yield held
    finally:
        if held:
            release(handle)
        else:
            os.close(handle)
