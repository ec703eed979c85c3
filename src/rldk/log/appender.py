"""Write whole lines to a file, through a disk that is full for a while."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections import deque
from pathlib import Path

from rldk.log.repair import cut_half_line

__all__ = ["Appender"]

_log = logging.getLogger("rldk")


class Appender:
    """Appends lines to an open file, each wholly or not at all, and raises nothing when the disk fails.

    Lines that cannot be written wait here in their order, up to `max_pending_bytes`; what is beyond that is dropped and
    counted. The first failure and the recovery are reported through the `rldk` logger.
    """

    def __init__(self, fd: int, path: Path, max_pending_bytes: int) -> None:
        self.fd = fd
        self.path = path
        self.max_pending_bytes = max_pending_bytes
        self.pending: deque[bytes] = deque()
        self.dropped = 0
        self._pending_bytes = 0
        self._failing = False

    def append(self, line: bytes) -> bool:
        """Write a line after all pending ones; `False` if it is pending too, or was dropped."""
        try:
            if self._failing:
                self._drain()
            self._write(line)
        except OSError as error:
            self._keep(line)
            self._report(error)
            return False
        if self._failing:
            self._report_recovery()
        return True

    def sync(self) -> bool:
        """Write what waits and put all on the disk itself; `False` where that fails."""
        try:
            if self._failing:
                self._drain()
            os.fsync(self.fd)
        except OSError as error:
            self._report(error)
            return False
        if self._failing:
            self._report_recovery()
        return True

    def give_up(self) -> None:
        """Count what is still pending as dropped, and log it."""
        lost = len(self.pending)
        self.dropped += lost
        self.pending.clear()
        if lost:
            _log.error("The event log %s is closed while it cannot be written: %d events are lost.", self.path, lost)

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
                cut_half_line(self.fd)
            raise

    def _drain(self) -> None:
        cut_half_line(self.fd)
        while self.pending:
            self._write(self.pending[0])
            self._pending_bytes -= len(self.pending.popleft())

    def _keep(self, line: bytes) -> None:
        if self._pending_bytes + len(line) > self.max_pending_bytes:
            self.dropped += 1
        else:
            self.pending.append(line)
            self._pending_bytes += len(line)

    def _report(self, error: OSError) -> None:
        if not self._failing:
            self._failing = True
            _log.warning(
                "The event log %s cannot be written (%s). The run continues: up to %d MiB of events wait in memory and "
                "are written once that works again; beyond that they are dropped. Free some space, or check the disk.",
                *(self.path, error.strerror or error, self.max_pending_bytes >> 20),
            )

    def _report_recovery(self) -> None:
        self._failing = False
        _log.warning("The event log %s is written again; events lost meanwhile: %d.", self.path, self.dropped)
