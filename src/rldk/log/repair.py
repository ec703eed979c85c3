"""Repair the end of a log after a crash."""

from __future__ import annotations

import os

from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.log.lines import MAX_LINE_BYTES
from rldk.log.opening import read_at

__all__ = ["cut_half_line", "repair_tail"]

_STEP = 1 << 16


def repair_tail(fd: int) -> str | None:
    """Make the file end in a newline; returns what was done, `None` if nothing was wrong.

    Trailing NUL bytes (a crash of the machine) are removed. A last line without newline is kept and ended if it is a whole
    event, and removed if it is the beginning of one. Anything else was not written by rldk: it is ended and kept, so that a
    wrong path destroys nothing; readers will report that line.
    """
    size = os.fstat(fd).st_size
    end = _end_of_text(fd, size)
    start = _after_last_newline(fd, end)
    done = []
    if end < size:
        os.ftruncate(fd, end)
        done.append(f"cut off {size - end} trailing NUL bytes")
    if start < end:
        line = read_at(fd, start, end - start) if end - start <= MAX_LINE_BYTES else b""
        if line.lstrip(b"\0 ").startswith(b"{") and not _is_event(line):
            os.ftruncate(fd, start)
            done.append(f"cut off a half-written last line of {end - start} bytes")
        else:
            os.write(fd, b"\n")
            done.append("added the missing last newline")
    return " and ".join(done) or None


def cut_half_line(fd: int) -> None:
    """Remove a line that was only partly written: the file ends after its last newline again."""
    size = os.fstat(fd).st_size
    end = _after_last_newline(fd, size)
    if end < size:
        os.ftruncate(fd, end)


def _is_event(line: bytes) -> bool:
    try:
        Event.from_json(line.strip(b"\0"))
    except ReadError:
        return False
    return True


def _end_of_text(fd: int, size: int) -> int:
    """Where the trailing NUL bytes begin."""
    end = size
    while end > 0:
        start = max(0, end - _STEP)
        text = read_at(fd, start, end - start).rstrip(b"\0")
        if text:
            return start + len(text)
        end = start
    return 0


def _after_last_newline(fd: int, end: int) -> int:
    """Where the last line before `end` begins."""
    while end > 0:
        start = max(0, end - _STEP)
        found = read_at(fd, start, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
