"""Which files and folders below a folder are logs of runs, in which order: one answer for scan, report, dashboard and watch.

`candidates` goes by names alone and opens nothing; `LogFinder` also looks at the beginning of each candidate, and remembers what
it saw. What a log holds is known only when it is read as a whole: `read_runs` passes over a file of settings, for example. What
cannot be opened at all (pipes, devices, links in a circle, folders without permission) is skipped and reported.
"""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rldk.core.errors import RLDKError
from rldk.core.files import RUN_FILES
from rldk.ingest.choose import ADAPTERS, choose
from rldk.ingest.formats.stores import MOST_ENTRIES
from rldk.ingest.run_settings import settings_files
from rldk.ingest.source import Source, why_not_readable
from rldk.storage.places import has_archive_name

__all__ = ["FoundLog", "LogFinder", "OnSkipped", "candidates", "newest_first", "size_and_change", "stamp_of"]

OnSkipped = Callable[[Path, str], None]
"""Called with each entry of a folder that cannot be opened, and why, as a sentence that follows its name."""

_BESIDE_A_LOG = re.compile(rf"(?P<run>.+)_(?:{'|'.join(RUN_FILES)})")
_OWN_FILES = frozenset({"rldk_acks.json"})
_TOOL_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_NOT_LOGS = frozenset({
    # source files
    ".py", ".pyi", ".pyx", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".rs", ".js", ".ts", ".jsx", ".tsx", ".java",
    ".rb", ".lua", ".sh", ".bash", ".zsh", ".ps1", ".sql", ".r", ".jl",
    # pages
    ".md", ".rst", ".html", ".htm", ".css", ".tex", ".bib", ".pdf", ".docx",
    # settings of tools
    ".toml", ".cfg", ".ini", ".lock", ".patch", ".diff",
    # weights, which are saved beside logs
    ".safetensors", ".pt", ".pth", ".ckpt", ".gguf", ".onnx",
})  # fmt: skip
"""Endings of files that are not logs, whatever they hold: a test or a page may well quote a log. Named by itself, such a file is
still read."""


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A log of runs: a file, or a folder that is one log; the adapter that reads it, its size and when it last changed."""

    path: Path
    adapter: str
    size: int
    modified: float


def candidates(folder: Path, hint: str | None = None, on_skipped: OnSkipped | None = None) -> Iterator[Path]:
    """What may be a log below a folder, in the order of the paths: files, and folders that are one log by themselves.

    Left out are hidden files and folders, folders of tools, source files and documentation, archives, the settings of a log, and
    what a monitor wrote beside its event log, which says all of it and more. With a `hint`, only folders that this adapter reads
    are one log. `on_skipped` is called with archives, and with what would be read if it could be opened, also inside of a folder
    that is one log.
    """
    skip = on_skipped or _ignore

    def failed(error: OSError) -> None:
        skip(Path(error.filename), f"cannot be read: {error.strerror}.")

    for root, folders, files in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _TOOL_FOLDERS)
        here = Path(root)
        if _is_one_log(here, hint):
            folders.clear()
            if on_skipped is not None:
                _report_shards(here, on_skipped)
            yield here
            continue
        logs = {name.removesuffix("_events.jsonl") for name in files if name.endswith("_events.jsonl")}
        folders[:] = [name for name in folders if not _is_beside(name, logs)]
        for name in folders:
            if why := _why_not_followed(here / name, folder):
                skip(here / name, why)
        named = sorted(name for name in files if not _is_no_log(name))
        settings = settings_files(named)
        for name in named:
            if name in settings or _is_beside(name, logs):
                continue
            if has_archive_name(path := here / name):
                skip(path, "is an archive, which is not searched: name it to read it.")
            elif os.path.isfile(path):  # noqa: PTH113  `Path.is_file` raises where it may not look
                yield path
            elif why := why_not_readable(path):
                skip(path, why)


def _is_beside(name: str, runs: set[str]) -> bool:
    """Whether a monitor wrote it beside the event log of one of these runs."""
    found = _BESIDE_A_LOG.fullmatch(name)
    return found is not None and found["run"] in runs


def _is_no_log(name: str) -> bool:
    return name in _OWN_FILES or name.startswith(".") or os.path.splitext(name)[1].lower() in _NOT_LOGS  # noqa: PTH122


def _ignore(path: Path, why: str) -> None:
    pass


def _why_not_followed(path: Path, root: Path) -> str:
    """Why a link to a folder is not searched; empty for a folder, and for a link to one that is searched by itself."""
    if not os.path.islink(path):  # noqa: PTH114  faster, for each folder
        return ""
    target, top = os.path.realpath(path), os.path.realpath(root)
    if os.path.realpath(path.parent).startswith(os.path.join(target, "")) or target == os.path.realpath(path.parent):  # noqa: PTH118
        return "is a link that leads in a circle."
    if target.startswith(os.path.join(top, "")):  # noqa: PTH118
        return ""
    return "is a link to a folder elsewhere, which is not followed: name that folder to read it."


def _report_shards(folder: Path, on_skipped: OnSkipped) -> None:
    """Report the files of a store that are none: its reader leaves them out."""
    waiting, seen = [folder], 0
    while waiting and seen < MOST_ENTRIES:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    seen += 1
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif not _opens(entry) and (why := why_not_readable(Path(entry.path))):
                        on_skipped(Path(entry.path), why)
        except OSError as error:
            on_skipped(here, f"cannot be read: {error.strerror}.")


def _opens(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file() and os.access(entry.path, os.R_OK)
    except OSError:
        return False


def _is_one_log(folder: Path, hint: str | None) -> bool:
    try:
        return any(kind.folders and hint in (None, kind.name) and kind(folder).can_handle() for kind in ADAPTERS)
    except (OSError, RLDKError):
        return False  # what cannot be looked into is reported when it is searched


def newest_first(logs: Iterable[FoundLog]) -> list[FoundLog]:
    """The log that changed last comes first."""
    return sorted(logs, key=lambda log: (-log.modified, log.path))


class LogFinder:
    """Finds the logs of a folder again and again; a file that has not changed since is not opened again."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.pending = 0
        self.skipped: list[tuple[Path, str]] = []
        self._known: dict[Path, tuple[int, int, str | None]] = {}

    def find(self, seconds: float = math.inf) -> list[FoundLog]:
        """All logs that exist now, in the order of the paths.

        After so many seconds no further file is opened: `pending` counts those left for the next call. `skipped` has what
        cannot be opened at all, with the reason.
        """
        end = time.monotonic() + seconds
        found, known = [], {}
        self.pending = 0
        self.skipped = []
        for path in candidates(self.folder, on_skipped=lambda path, why: self.skipped.append((path, why))):
            try:
                size, changed = size_and_change(path)
            except OSError:
                continue  # gone since
            seen = self._known.get(path)
            if seen is None or seen[:2] != (size, changed):
                if time.monotonic() > end and seen is None:
                    self.pending += 1
                    continue
                seen = (size, changed, _adapter_of(path))
            known[path] = seen
            if seen[2] is not None:
                found.append(FoundLog(path, seen[2], size, changed / 1e9))
            elif why := why_not_readable(path):
                self.skipped.append((path, why))
        self._known = known
        return found


def size_and_change(path: Path) -> tuple[int, int]:
    """Bytes and the time of the last change, in nanoseconds; of a folder, those of all files in it."""
    if not path.is_dir():
        known = path.stat()
        return known.st_size, known.st_mtime_ns
    stats = [found for one in path.rglob("*") if (found := _stat_of(one)) is not None]
    return sum(one.st_size for one in stats), max((one.st_mtime_ns for one in stats), default=0)


def stamp_of(path: Path) -> tuple[int, int] | None:
    """The same, by which a change is noticed; `None` for a file or folder that is gone. A copy has the time of its original."""
    try:
        return size_and_change(path)
    except OSError:
        return None


def _stat_of(path: Path) -> os.stat_result | None:
    """What is known of a file; `None` for what is not one, or may not be looked at."""
    try:
        known = path.stat()
    except OSError:
        return None
    return known if stat.S_ISREG(known.st_mode) else None


def _adapter_of(path: Path) -> str | None:
    try:
        return choose(Source(path)).name
    except (RLDKError, OSError):
        return None
