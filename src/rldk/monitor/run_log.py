"""The event log of a monitor, with the alerts that wait for the next event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rldk.core.event import Event
from rldk.judge.alerts import ALERTS, Alert, alerts_text
from rldk.monitor.guard import Guard
from rldk.monitor.outputs import EventLog

__all__ = ["RunLog"]

_MAX_PENDING = 100  # alerts without an event
_KEY = "event log"


class RunLog:
    """Writes events, and with each what was seen between it and the event before; an error of the log is reported, not raised.

    Args:
        log: where to write; without one, events only get their alerts.
        guard: reports errors.
    """

    def __init__(self, log: EventLog | None, guard: Guard) -> None:
        self.log, self._guard = log, guard
        self._pending: list[Alert] = []
        self._last_alerts: list[Alert] = []  # those in the last event
        self._last_notes: list[str] = []

    def open(self) -> None:
        """Open the log."""
        if self.log is not None:
            self._guard.attempt(_KEY, self.log.open)

    def earlier(self, run_id: str) -> Iterator[Event]:
        """The events of this run that the log holds already."""
        return iter(()) if self.log is None else self.log.earlier(run_id)

    @property
    def has_alerts(self) -> bool:
        """Whether alerts wait for an event."""
        return bool(self._pending)

    def add(self, alert: Alert) -> None:
        """Keep an alert for the next event."""
        self._pending = [*self._pending[-_MAX_PENDING:], alert]

    def write(self, event: Event, is_new: bool = True) -> Event:
        """Log an event with the alerts that came before it, and return it; more of the same step leaves them for the next one."""
        self._last_notes = event.notes
        if is_new:
            self._last_alerts, self._pending = self._pending, []
            if self._last_alerts:
                event = replace(event, model_info={**event.model_info, ALERTS: alerts_text(self._last_alerts)})
        if self.log is not None:
            self._guard.attempt(_KEY, self.log.write, event)
            if (error := self.log.error) is not None:
                self._guard.knows(error)  # the log has said so
        return event

    def last_alerts(self, last_step: int | None) -> Event:
        """An event for the alerts after which none came, to be written.

        It has the step of the last event, to which a reader then adds it, or that of the alerts where it is later, as in a crash.
        """
        late = self._pending
        step = max(one.step for one in late) if last_step is None else max(last_step, *(one.step for one in late))
        notes = [one.message for one in late]
        if step == last_step:  # of two rows of a step, a reader takes what the later one says
            notes, self._pending = [*self._last_notes, *notes], [*self._last_alerts, *late]
        return Event(step, {"alert_count": float(len(late))}, notes=notes)

    def save(self, step: int) -> None:
        """A checkpoint was written: what is logged so far must survive with it."""
        if self.log is not None:
            self._guard.attempt(_KEY, self.log.save, step)

    def close(self) -> None:
        """Close the log; its last error is raised."""
        if self.log is not None:
            self.log.close()
