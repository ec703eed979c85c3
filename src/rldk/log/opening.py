"""Open an event log for one writer, or explain why that is not possible."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rldk.core.errors import LogLockedError, LogWriteError
from rldk.log.blocks import compression_of
from rldk.log.lock import lock, release

__all__ = ["APPEND", "explained", "open_log", "read_at", "sync_folder"]

APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
_RACES = 100  # how often the log may be replaced while it is opened


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a `LogWriteError` that says what, where, and what to do."""
    try:
        yield
    except LogWriteError:
        raise
    except (FileExistsError, NotADirectoryError):
        blocker = next((parent for parent in path.parents if parent.is_file()), path.parent)
        raise LogWriteError(
            f"Cannot write the event log {path}: {blocker} is not a folder. Choose another path."
        ) from None
    except IsADirectoryError:
        raise LogWriteError(_is_a_folder(path)) from None
    except PermissionError as error:
        what = "the file" if os.access(path, os.F_OK) else f"the folder {path.parent}"
        raise LogWriteError(
            f"Cannot write the event log {path}: {what} may not be written by this user ({error.strerror}). "
            "Choose another path, or change its permissions."
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LogWriteError(f"Cannot write the event log {path}: {reason}. Choose another path.") from error


def open_log(path: Path) -> int:
    """Open and lock the log at `path`, with its folders; returns the descriptor. Raises `LogWriteError`."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(_RACES):
            fd = _open_regular(path)
            if not lock(fd):
                os.close(fd)
                raise LogLockedError(
                    f"The event log {path} is being written by another writer, in this process or another one. "
                    "Stop that run, close that writer, or give this run a path of its own."
                )
            if _is_still(path, fd):
                _refuse_compressed(path, fd)
                return fd
            release(fd)  # replaced or deleted between opening and locking
        raise LogWriteError(f"Cannot write the event log {path}: it is replaced again and again. Choose another path.")


def read_at(fd: int, start: int, count: int) -> bytes:
    """Up to `count` bytes from `start`; the position of the descriptor does not affect appending."""
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, count)


def sync_folder(folder: Path) -> None:
    """Make a new or replaced name in a folder survive a crash of the machine, where the system supports it."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _is_a_folder(path: Path) -> str:
    return f"Cannot write the event log {path}: it is a folder. Give a file, such as {path / 'events.jsonl'}."


def _open_regular(path: Path) -> int:
    """A pipe or device is refused before it is opened, since opening one can block or have effects."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        fd = os.open(path, APPEND, 0o666)
        sync_folder(path.parent)
        return fd
    if stat.S_ISDIR(mode):
        raise LogWriteError(_is_a_folder(path))
    if not stat.S_ISREG(mode):
        raise LogWriteError(f"Cannot write the event log {path}: it is not a regular file. Choose another path.")
    return os.open(path, APPEND, 0o666)


def _is_still(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _refuse_compressed(path: Path, fd: int) -> None:
    kind = compression_of(read_at(fd, 0, 4))
    if kind is not None:
        release(fd)
        raise LogWriteError(f"Cannot append to the event log {path}: it is compressed ({kind}). Choose another path.")
