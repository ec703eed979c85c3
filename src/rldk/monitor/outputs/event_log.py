"""The event log: one event per line, handed to the operating system before anything else is done with it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.judge.alerts import ALERTS
from rldk.log import EventReader, EventWriter
from rldk.monitor.outputs.base import FileOutput

__all__ = ["EventLog"]

_MAX_WAITING = 10_000  # events that wait for a log that cannot be opened


class EventLog(FileOutput):
    """Writes each event to a log. The monitor calls `write` before it judges the event, so that a crash loses nothing.

    Args:
        path: the log; missing folders are made when the first event comes.
        resume_step: the last step of the checkpoint that the run resumes from; later rows are removed.
        every: write every n-th event, and each with a note or an alert. A scan of the log then sees less than the monitor.
    """

    name: ClassVar[str] = "event log"

    def __init__(self, path: str | os.PathLike[str], resume_step: int | None = None, every: int = 1) -> None:
        super().__init__(path)
        self.resume_step = resume_step
        self.every = max(1, int(every))
        self._writer: EventWriter | None = None
        self._waiting: deque[Event] = deque(maxlen=_MAX_WAITING)
        self._count = 0

    def open(self) -> None:
        """Open the log, repair its end, and remove the rows that a resumed run writes again."""
        if self._writer is None:
            self._writer = EventWriter(self.path, resume_step=self.resume_step)

    def earlier(self, run_id: str) -> Iterator[Event]:
        """The events of this run that the log holds already."""
        return (event for event in EventReader(self.path) if event.run_id in (None, run_id))

    def write(self, event: Event) -> None:
        """Append the event; while the log cannot be opened, events wait here."""
        self._count += 1
        if self._count % self.every == 0 or self._count == 1 or event.notes or ALERTS in event.model_info:
            self._waiting.append(event)
            self._flush()

    def _flush(self) -> None:
        self.open()
        while self._waiting and self._writer is not None:
            self._writer.write(self._waiting.popleft())

    @property
    def error(self) -> Exception | None:
        """Why the log cannot be written at present."""
        return None if self._writer is None else self._writer.error

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        """A second log, written with the other outputs."""
        self.write(event)

    def save(self, step: int) -> None:
        if self._writer is not None:
            self._writer.sync()

    def close(self) -> None:
        if self._waiting:
            self._flush()
        if self._writer is not None:
            self._writer.close()
