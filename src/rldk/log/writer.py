"""Append events to a log so that nothing acknowledged is lost, whatever kills the run."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import NoReturn

from rldk.core.errors import LogWriteError
from rldk.core.event import Event
from rldk.log.appender import Appender
from rldk.log.lock import release
from rldk.log.opening import explained, open_log
from rldk.log.readable import line_of
from rldk.log.repair import repair_tail
from rldk.log.resume import check_resume_step, drop_rows_after

__all__ = ["EventWriter"]

_log = logging.getLogger("rldk")
_open_writers: weakref.WeakSet[EventWriter] = weakref.WeakSet()


class EventWriter:
    """One event per line, handed to the operating system before `write` returns.

    Opening repairs the end that a crash left, and with `resume_step` takes out the rows of later steps, which the
    resumed run will write again. While it is open no other writer may have the file.

    A full disk, a quota or an I/O error never reaches the training loop: it is reported once through the `rldk` logger
    (which prints to stderr unless the program has set up logging), no half line is left behind, and the events wait in
    memory, in order, until writing works again, which is reported too. Beyond `max_pending_bytes` they are dropped and
    counted. A process forked from the one that opened the log never writes to it.

    Args:
        path: the log; missing folders are made.
        resume_step: the last step of the checkpoint that the run resumes from.
        max_pending_bytes: how much may wait in memory for the disk.

    Attributes:
        repair: what opening had to repair at the end of the file, or `None`.
        removed_rows: how many rows beyond `resume_step` were taken out.

    Raises:
        LogLockedError: another writer has the file.
        LogWriteError: the file cannot be opened for writing.
        UsageError: `resume_step` is not a step.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        resume_step: int | None = None,
        max_pending_bytes: int = 32 << 20,
    ) -> None:
        self._open = False
        resume_step = check_resume_step(resume_step)
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal handler may write while its own thread is in here
        self.path = Path(path)
        self.removed_rows = 0
        with explained(self.path):
            place = Path(os.path.realpath(self.path))  # a link stays a link when its file is replaced
        fd = open_log(place)
        try:
            with explained(place):
                self.repair = repair_tail(fd)
                if resume_step is not None:
                    fd, self.removed_rows = drop_rows_after(fd, place, resume_step)
        except BaseException:
            release(fd)
            raise
        self._out = Appender(fd, self.path, max_pending_bytes)
        self._open = True
        _open_writers.add(self)
        if self.repair is not None:
            _log.warning("The event log %s was not closed properly: %s.", self.path, self.repair)
        if self.removed_rows:
            _log.info("Resuming %s after step %s: %d later rows removed.", self.path, resume_step, self.removed_rows)

    @property
    def pending(self) -> int:
        """How many events wait in memory for the disk."""
        return len(self._out.pending)

    @property
    def dropped(self) -> int:
        """How many events are lost because the disk failed for too long."""
        return self._out.dropped

    @property
    def error(self) -> Exception | None:
        """Why nothing can be written at present; `None` while all is well."""
        return self._out.error

    @property
    def closed(self) -> bool:
        """Whether this process can no longer write to the log through this writer."""
        return not self._open

    def write(self, event: Event) -> bool:
        """Append one event; `True` once the operating system has it, so that killing the process cannot lose it.

        `False` means that it waits in memory (see `pending`), was dropped, or that this is a forked child.
        After `close` it raises `LogWriteError`: that is a mistake in the program, not a state of the disk. So is an
        event that cannot be JSON (one that holds itself) or that no reader would take, which raises before anything is
        written. Of an event that is too large for a reader, the largest parts are left out, and a note in it says so.
        """
        if os.getpid() != self._pid:
            return False
        line = line_of(event)
        with self._lock:
            if not self._open:
                raise LogWriteError(f"The event log {self.path} is closed. Open a new EventWriter to continue.")
            return self._out.append(line)

    def sync(self) -> bool:
        """Put everything on the disk itself, so that even a crash of the machine cannot lose it; `True` if that worked.

        Meant for checkpoints: it takes milliseconds where `write` takes microseconds.
        """
        if os.getpid() != self._pid:
            return False
        with self._lock:
            return self._open and self._out.sync()

    def close(self) -> None:
        """Write what is pending, sync, and close the file; a second call does nothing."""
        if os.getpid() != self._pid:
            self._leave_to_parent()
            return
        with self._lock:
            if self._open:
                self._open = False
                _open_writers.discard(self)
                self._out.sync()
                self._out.give_up()
                release(self._out.fd)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"An EventWriter cannot be copied or pickled: a log has one writer. Pass the writer itself, or its path {self.path}."
        )

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            self.close()

    def _leave_to_parent(self) -> None:
        """In a forked child: close its copy of the descriptor, which would keep the lock beyond the parent's death."""
        if self._open:
            self._open = False
            with contextlib.suppress(OSError):
                os.close(self._out.fd)


def _leave_all_to_parent() -> None:
    for writer in list(_open_writers):
        writer._leave_to_parent()
    _open_writers.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_all_to_parent)
