"""Alerts: what a probe or a limit saw between two events. They are anomalies, and travel in the log with the next event."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import nan
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event

__all__ = ["ALERTS", "PASSING", "Alert", "alerts_in", "alerts_text"]

ALERTS = "alerts"
"""Under this name of its `model_info` an event holds the alerts that came before it."""

PASSING = 5
"""Events after which an alert that has not come again is over; as long as most detectors wait."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; `lasting` says that it stands for good, as a damaged checkpoint does, and does not pass by itself."""

    type: str
    severity: str
    step: int
    message: str
    advice: str = ""
    tracker: str = "probe"
    lasting: bool = False

    @property
    def key(self) -> str:
        """What tells it from the alerts of other types, and from detectors."""
        return f"alert:{self.type}"

    def anomaly(self, index: int) -> Anomaly:
        """The alert as an anomaly of the event number `index`."""
        return Anomaly(
            self.type, self.severity, self.tracker, self.step, index, self.message, nan, nan, self.advice, index
        )  # fmt: skip


def alerts_text(alerts: Iterable[Alert]) -> str:
    """Alerts as an event holds them: one JSON text, since logs read as tables keep texts and no lists."""
    return json.dumps([asdict(alert) for alert in alerts])


def alerts_in(event: Event) -> list[Alert]:
    """The alerts that came before an event; a text that holds none is ignored."""
    given = event.model_info.get(ALERTS)
    if not isinstance(given, str):
        return []
    try:
        found: Any = json.loads(given)
        return [Alert(**one) for one in found if one["severity"] in ("warning", "critical")]
    except (ValueError, TypeError, KeyError):
        return []
