"""Write whole lines to a file, through a disk that is full for a while."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections import deque
from pathlib import Path

from rldk.core.errors import LogWriteError
from rldk.log.lock import release
from rldk.log.opening import open_log, read_at
from rldk.log.repair import cut_half_line, repair_tail

__all__ = ["Appender"]

_log = logging.getLogger("rldk")
_TRIES = 3  # how often a line is written again that another program has spoilt
_MAX_REPORTS = 50


class Appender:
    """Appends lines to an open file, each wholly or not at all, and raises nothing when the disk fails.

    Lines that cannot be written wait here in their order, up to `max_pending_bytes`; what is beyond that is dropped and
    counted. The first failure and the recovery are reported through the `rldk` logger.

    A line counts as written once the file that holds it has a name and the line is one of its own. So a log that was deleted
    is begun again, and a line that was joined to the half line of another program is written again; both are reported.
    """

    def __init__(self, fd: int, path: Path, max_pending_bytes: int) -> None:
        self.fd = fd
        self.path = path
        self.max_pending_bytes = max_pending_bytes
        self.pending: deque[bytes] = deque()
        self.dropped = 0
        self.error: Exception | None = None  # why nothing can be written now
        self._pending_bytes = 0
        self._size = os.fstat(fd).st_size
        self._reports = 0

    def append(self, line: bytes) -> bool:
        """Write a line after all pending ones; `False` if it is pending too, or was dropped."""
        try:
            if self.error is not None:
                self._drain()
            self._put(line)
        except (OSError, LogWriteError) as error:
            self._keep(line)
            self._report(error)
            return False
        if self.error is not None:
            self._report_recovery()
        return True

    def sync(self) -> bool:
        """Write what waits and put all on the disk itself; `False` where that fails."""
        try:
            if not os.fstat(self.fd).st_nlink:
                self._begin_again()
            if self.error is not None:
                self._drain()
            os.fsync(self.fd)
        except (OSError, LogWriteError) as error:
            self._report(error)
            return False
        if self.error is not None:
            self._report_recovery()
        return True

    def give_up(self) -> None:
        """Count what is still pending as dropped, and log it."""
        lost = len(self.pending)
        self.dropped += lost
        self.pending.clear()
        if lost:
            _log.error("The event log %s is closed while it cannot be written: %d events are lost.", self.path, lost)

    def _put(self, line: bytes) -> None:
        """Write a line, and make sure that a reader will find it."""
        self._write(line)
        self._size += len(line)
        found = os.fstat(self.fd)
        if found.st_size != self._size or not found.st_nlink:
            self._put_again(line)

    def _put_again(self, line: bytes) -> None:
        """The file is not as it was left: write the line again where it is not a line of a file that has a name."""
        for _ in range(_TRIES):
            end = os.lseek(self.fd, 0, os.SEEK_CUR)  # where our line ends: others may have written after it
            if not os.fstat(self.fd).st_nlink:
                self._begin_again()
            elif self._holds(line, end):
                self._report_change()
                return
            last = read_at(self.fd, max(os.fstat(self.fd).st_size - 1, 0), 1)
            self._write(line if last in (b"", b"\n") else b"\n" + line)
            self._size = -1
        if not os.fstat(self.fd).st_nlink or not self._holds(line, os.lseek(self.fd, 0, os.SEEK_CUR)):
            raise OSError(errno.EBUSY, "another program changes the file again and again")
        self._report_change()

    def _holds(self, line: bytes, end: int) -> bool:
        """Whether this line is in the file, up to this place, as a line of its own."""
        start = end - len(line)
        before = read_at(self.fd, start - 1, 1) if start > 0 else b"\n"
        return start >= 0 and before == b"\n" and read_at(self.fd, start, len(line)) == line

    def _begin_again(self) -> None:
        """The file was deleted: make a new one in its place, or go on with the one that is there by now."""
        place = Path(os.path.realpath(self.path))
        fd = open_log(place)
        try:
            repair_tail(fd)
        except BaseException:
            release(fd)
            raise
        release(self.fd)
        self.fd, self._size = fd, os.fstat(fd).st_size
        self._say("The event log %s was deleted while it was written: a new one has been started.", self.path)

    def _write(self, line: bytes) -> None:
        """Write the whole line or nothing of it."""
        done = 0
        try:
            while done < len(line):
                written = os.write(self.fd, line[done:])
                if not written:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                done += written
        except BaseException:  # an interrupt must leave no half line either
            with contextlib.suppress(OSError):  # tried again before the next line
                self._cut()
            raise

    def _cut(self) -> None:
        cut_half_line(self.fd)
        self._size = os.fstat(self.fd).st_size

    def _drain(self) -> None:
        self._cut()
        while self.pending:
            self._put(self.pending[0])
            self._pending_bytes -= len(self.pending.popleft())

    def _keep(self, line: bytes) -> None:
        if self._pending_bytes + len(line) > self.max_pending_bytes:
            self.dropped += 1
        else:
            self.pending.append(line)
            self._pending_bytes += len(line)

    def _report(self, error: OSError | LogWriteError) -> None:
        if self.error is None:
            self._say(
                "The event log %s cannot be written (%s). The run continues: up to %d MiB of events wait in memory and "
                "are written once that works again; beyond that they are dropped. Free some space, or check the disk.",
                *(self.path, getattr(error, "strerror", None) or error, self.max_pending_bytes >> 20),
            )
        self.error = error

    def _report_recovery(self) -> None:
        self.error = None
        self._say("The event log %s is written again; events lost meanwhile: %d.", self.path, self.dropped)

    def _report_change(self) -> None:
        size, known = os.fstat(self.fd).st_size, self._size
        self._size = size
        if known >= 0 and size != known:
            change = "shortened" if size < known else "written to"
            self._say("The event log %s was %s by another program. Events continue on a line of their own.", self.path, change)

    def _say(self, message: str, *args: object) -> None:
        """Log a warning; a log that is deleted again and again is not worth thousands of them."""
        self._reports += 1
        if self._reports <= _MAX_REPORTS:
            _log.warning(message, *args)
