"""The logs in an archive, unpacked once: no name leads out of the folder, and no archive fills the disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

from rldk.core.errors import ReadError
from rldk.storage.cache import make_room, use
from rldk.storage.places import ARCHIVES, cache_folder, safe_below

__all__ = ["unpack"]

MAX_FILES, MAX_BYTES, MAX_RATIO = 200_000, 64 << 30, 200
"""How many files and bytes an archive may hold, and how many times its own size from a gigabyte on."""

_SMALL = 1 << 30
_BLOCK = 1 << 20


def unpack(path: Path) -> Path:
    """The folder with what an archive holds; one that has not changed is unpacked once."""
    known = path.stat()
    key = hashlib.sha256(os.fsencode(f"{path.absolute()} {known.st_size} {known.st_mtime_ns}")).hexdigest()[:16]
    target = cache_folder() / ARCHIVES / key
    use(target)
    if target.exists():
        return target
    make_room(known.st_size)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=target.parent))
    try:
        _unpack_into(part, path, max(_SMALL, known.st_size * MAX_RATIO))
        (part / ".source").write_bytes(os.fsencode(path))
        part.rename(target)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        if not target.exists():  # else another process was quicker
            raise ReadError(f"{path} cannot be unpacked: {str(error).rstrip('.')}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    make_room()
    return target


def _unpack_into(folder: Path, path: Path, most: int) -> None:
    left = min(most, MAX_BYTES)
    for number, (name, content) in enumerate(_members(path)):
        if number >= MAX_FILES:
            raise ReadError(f"{path} holds more than {MAX_FILES:,} files: unpack it yourself and give the folder.")
        target = safe_below(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("wb") as file:
            while block := content.read(_BLOCK):
                left -= len(block)
                if left < 0:
                    raise ReadError(f"{path} holds far more than its size suggests: unpack it yourself and give the folder.")
                file.write(block)


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The plain files of an archive, by name; links and devices are left out."""
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                kind = entry.external_attr >> 28
                if not entry.is_dir() and kind in (0, 8):  # a plain file, or made where there are no kinds
                    yield entry.filename, archive.open(entry)
        return
    with closing(tarfile.open(path)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content
