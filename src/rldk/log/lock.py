"""One writer per file: an advisory lock on the log itself, which ends with its holder and leaves no lock file.

The library filelock locks a second file beside the log, which stays behind and does not protect a log that is moved.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys

__all__ = ["lock", "release"]

_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}
_log = logging.getLogger("rldk")

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 62  # locks are mandatory on Windows: one byte that nobody reads

    def _take(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _give_back(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _give_back(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


def lock(fd: int) -> bool:
    """Lock an open file, or return `False` where another writer has it.

    A file system without locks (some network ones) must not prevent logging: a warning is logged, and the file counts as
    locked.
    """
    try:
        _take(fd)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        _log.warning("rldk cannot lock its event log here (%s): keep a second run from writing to it.", error.strerror)
    return True


def release(fd: int) -> None:
    """Unlock and close. The unlocking is explicit, since a forked child may still hold a copy of the descriptor."""
    with contextlib.suppress(OSError):
        _give_back(fd)
    with contextlib.suppress(OSError):
        os.close(fd)
