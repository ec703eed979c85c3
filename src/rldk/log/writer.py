"""Append events to a log so that nothing acknowledged is lost, whatever kills the run."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from rldk.core.errors import LogWriteError, ReadError, UsageError
from rldk.core.event import Event
from rldk.core.jsonio import to_step
from rldk.log.appender import Appender
from rldk.log.lines import MAX_LINE_BYTES
from rldk.log.lock import release
from rldk.log.opening import explained, open_log
from rldk.log.repair import repair_tail
from rldk.log.resume import check_resume_step, drop_rows_after

__all__ = ["EventWriter"]

_log = logging.getLogger("rldk")
_open_writers: weakref.WeakSet[EventWriter] = weakref.WeakSet()
_MANY_BRACKETS = 200  # fewer cannot be nested too deeply for a reader
_PARTS = ("extra", "data_slice", "rng", "model_info")


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
        line = _line_of(event)
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


def _line_of(event: Event) -> bytes:
    """The line of an event, with its newline. Parts that no reader would take are left out, and a note says which.

    Raises `UsageError` for what is not an event, has no step, or is too large by its metrics alone.
    """
    try:
        line = event.to_json()
        step = to_step(event.step)
    except (AttributeError, TypeError):
        if isinstance(event, Event):
            raise
        raise UsageError(f"Expected an `Event` to write, got {event!r:.80}: make one by `Event(step, metrics)`.") from None
    if step is None:
        raise UsageError(f"Expected the `step` of an event to be a whole number of 64 bits, got {event.step!r:.80}.")
    if len(line) >= MAX_LINE_BYTES or line.count(b"{") + line.count(b"[") > _MANY_BRACKETS:
        line = _shortened(event, line)
    return line + b"\n"


def _shortened(event: Event, line: bytes) -> bytes:
    left: list[str] = []
    parts = sorted(_PARTS, key=lambda name: -len(str(getattr(event, name))))
    while not _is_readable(line):
        if not parts:
            raise UsageError(f"The event of step {event.step} is longer than {MAX_LINE_BYTES >> 20} MiB: it is not written.")
        name = parts.pop(0)
        left.append(name)
        kept = {key: event.model_info[key] for key in ("run_id", "phase") if key in event.model_info}
        reduced: dict[str, Any] = {name: kept if name == "model_info" else {}}
        event = replace(event, **reduced)
        note = f"too large or too deeply nested to be read again, and left out: {', '.join(left)}"
        line = replace(event, notes=[*event.notes, note]).to_json()
    return line


def _is_readable(line: bytes) -> bool:
    if len(line) >= MAX_LINE_BYTES:
        return False
    try:
        Event.from_json(line)
    except ReadError:
        return False
    return True


def _leave_all_to_parent() -> None:
    for writer in list(_open_writers):
        writer._leave_to_parent()
    _open_writers.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_all_to_parent)
