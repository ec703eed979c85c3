"""Remove the rows from a log that a resumed run is going to write again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rldk.core.errors import LogLockedError, UsageError
from rldk.core.jsonio import loads, to_step
from rldk.log.lines import MAX_LINE_BYTES
from rldk.log.lock import lock, release
from rldk.log.opening import APPEND, read_at, sync_folder

__all__ = ["check_resume_step", "drop_rows_after"]

_COPY = 1 << 20


def check_resume_step(step: object) -> int | None:
    """The step of a checkpoint as a whole number, `None` for a run that does not resume. Raises `UsageError`."""
    if step is None:
        return None
    found = to_step(step)
    if found is None or found < 0:
        raise UsageError(
            f"Expected `resume_step` to be a whole number of at least 0, the step of a checkpoint, got {step!r:.80}. "
            "Leave it out for a run that does not resume."
        )
    return found


def drop_rows_after(fd: int, path: Path, step: int) -> tuple[int, int]:
    """Remove every row whose step is beyond `step`; all other lines stay, in their order, events or not.

    A crash at any moment leaves the old file or the new one. If the rows to remove are the end of the file, which is so
    unless steps were logged out of order, the file is shortened: one atomic change that needs no disk space and keeps the
    file itself, with its owner and links. Otherwise a new file takes its place, locked before anyone can see it.

    Returns the descriptor to continue with and the number of rows removed.
    """
    temporary = path.with_name(f".{path.name}.resume")
    temporary.unlink(missing_ok=True)  # of a run that crashed here
    size = os.fstat(fd).st_size
    stale = [(start, end, rows) for start, end, rows in _stretches(fd, step) if rows]
    if not stale:
        return fd, 0
    removed = sum(rows for _, _, rows in stale)
    if len(stale) == 1 and stale[0][1] == size:
        os.ftruncate(fd, stale[0][0])
        os.fsync(fd)
        return fd, removed
    return _replace(fd, path, temporary, [(start, end) for start, end, _ in stale]), removed


def _stretches(fd: int, step: int) -> Iterator[tuple[int, int, int]]:
    """The file in stretches of lines of one kind: start, end, and how many rows in it are removed (0: all stay)."""
    start = end = rows = 0
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", buffering=_COPY, closefd=False) as file:
        for length, line in _whole_lines(file):
            stale = _is_beyond(line, step)
            if stale != bool(rows) and end > start:
                yield start, end, rows
                start, rows = end, 0
            end += length
            rows += stale
    if end > start:
        yield start, end, rows


def _whole_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with its length; a line that is too long for any reader is returned empty."""
    while line := file.readline(MAX_LINE_BYTES):
        length = len(line)
        while not line.endswith(b"\n"):
            more = file.readline(MAX_LINE_BYTES)
            if not more:
                break
            length += len(more)
            line = more
        yield length, line if length == len(line) else b""


def _is_beyond(line: bytes, step: int) -> bool:
    try:
        row = loads(line.strip(b"\0\r\n"))
    except ValueError:
        return False
    reached = to_step(row.get("step")) if isinstance(row, dict) else None
    return reached is not None and reached > step


def _replace(fd: int, path: Path, temporary: Path, holes: list[tuple[int, int]]) -> int:
    """Put a copy of the file without the holes in its place; returns the descriptor of the copy, locked."""
    copy = os.open(temporary, APPEND | os.O_EXCL, 0o600)
    try:
        if not lock(copy):
            raise LogLockedError(f"Cannot resume {path}: {temporary} is locked by another process. Stop it first.")
        _copy(fd, copy, holes)
        _keep_ownership(fd, copy)
        os.fsync(copy)
        temporary.replace(path)
    except BaseException:
        release(copy)
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    release(fd)
    return copy


def _copy(fd: int, copy: int, holes: list[tuple[int, int]]) -> None:
    position = 0
    for start, end in [*holes, (os.fstat(fd).st_size, 0)]:
        while position < start:
            block = memoryview(read_at(fd, position, min(_COPY, start - position)))
            position += len(block)
            while block:
                block = block[os.write(copy, block) :]
        position = end


def _keep_ownership(fd: int, copy: int) -> None:
    """Give the copy the owner and mode of the original, as far as this user may."""
    if hasattr(os, "fchmod"):
        original = os.fstat(fd)
        with contextlib.suppress(OSError):
            os.fchown(copy, original.st_uid, original.st_gid)
        os.fchmod(copy, original.st_mode & 0o7777)
