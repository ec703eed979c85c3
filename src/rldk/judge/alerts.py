"""Alerts: what a probe or a limit saw between two events. They are anomalies, and in the log with the next event."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from typing import Any

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.event import Event
from rldk.core.jsonio import loads, to_step

__all__ = ["ALERTS", "PASSING", "Alert", "alerts_in", "alerts_text"]

ALERTS = "alerts"
"""Under this name of its `model_info` an event holds the alerts that came before it; after the last event, a row of its own."""

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
    family: str = "probe"
    lasting: bool = False

    @property
    def key(self) -> str:
        """What identifies it among other alerts and detectors."""
        return f"alert:{self.type}"

    def anomaly(self, index: int) -> Anomaly:
        """The alert as an anomaly of the event number `index`."""
        return Anomaly(
            self.type, self.severity, self.family, self.step, index, self.message, nan, nan, self.advice, index
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The alert as the event log holds it; `family` is called `tracker` there."""
        return {
            "type": self.type,
            "severity": self.severity,
            "step": self.step,
            "message": self.message,
            "advice": self.advice,
            "tracker": self.family,
            "lasting": self.lasting,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Alert:
        """The alert that `to_dict` wrote; raises `ValueError` where a field is missing or of another type."""
        given = {"advice": "", "tracker": "probe", "lasting": False, **saved}
        texts: list[Any] = [given.get(name) for name in ("type", "message", "advice", "tracker")]
        severity, step, lasting = given.get("severity"), to_step(given.get("step")), given["lasting"]
        if not all(isinstance(text, str) for text in texts) or not isinstance(lasting, bool):
            raise ValueError(f"Expected texts and a truth value for `lasting`, got {texts} and {lasting!r}.")
        if severity not in SEVERITIES or step is None:
            raise ValueError(f"Expected a severity of {list(SEVERITIES)} and a step, got {severity!r} and {given.get('step')!r}.")
        kind, message, advice, family = texts
        return cls(kind, severity, step, message, advice, family, lasting)


def alerts_text(alerts: Iterable[Alert]) -> str:
    """Alerts as an event holds them: one JSON text, since logs read as tables keep texts and no lists."""
    return json.dumps([alert.to_dict() for alert in alerts])


def alerts_in(event: Event) -> list[Alert]:
    """The alerts that came before an event; a text that holds none is ignored, and so is an alert that is damaged."""
    given = event.model_info.get(ALERTS)
    if not isinstance(given, str):
        return []
    try:
        saved: Any = loads(given.encode("utf-8", "replace"))
    except ValueError:
        return []
    found = []
    for one in saved if isinstance(saved, list) else ():
        with suppress(ValueError):
            found += [Alert.from_dict(one)] if isinstance(one, Mapping) else []
    return found
