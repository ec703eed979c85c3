"""The alerts that wait for the next event, with which the log holds them."""

from __future__ import annotations

from dataclasses import replace

from rldk.core.event import Event
from rldk.judge.alerts import ALERTS, Alert, alerts_text

__all__ = ["PendingAlerts"]

_MAX_PENDING = 100  # alerts without an event


class PendingAlerts:
    """Collects what was seen between two events for the next one, or for an event of its own after the last."""

    def __init__(self) -> None:
        self._pending: list[Alert] = []
        self._last_alerts: list[Alert] = []  # those in the last event
        self._last_notes: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._pending)

    def add(self, alert: Alert) -> None:
        """Keep an alert for the next event."""
        self._pending = [*self._pending[-_MAX_PENDING:], alert]

    def attach(self, event: Event, is_new: bool = True) -> Event:
        """The event with the alerts that came before it, for all logs; more of the same step leaves them for the next one."""
        self._last_notes = event.notes
        if not is_new:
            return event
        self._last_alerts, self._pending = self._pending, []
        if not self._last_alerts:
            return event
        return replace(event, model_info={**event.model_info, ALERTS: alerts_text(self._last_alerts)})

    def closing_event(self, last_step: int | None) -> Event:
        """An event for the alerts after which none came; `attach` adds them.

        It has the step of the last event, to which a reader then adds it, or that of the alerts where it is later, as in a crash.
        """
        late = self._pending
        step = max(one.step for one in late) if last_step is None else max(last_step, *(one.step for one in late))
        notes = [one.message for one in late]
        if step == last_step:  # of two rows of a step, a reader takes what the later one says
            notes, self._pending = [*self._last_notes, *notes], [*self._last_alerts, *late]
        return Event(step, {"alert_count": float(len(late))}, notes=notes)
