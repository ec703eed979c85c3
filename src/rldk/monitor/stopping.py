"""When to stop a run, and the exception that stops it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import RLDKError, UsageError
from rldk.core.files import strict
from rldk.judge.incidents.incident import group_incidents
from rldk.judge.judge import Judge

__all__ = ["Stop", "Stopper", "TrainingStopped"]


@dataclass(frozen=True, slots=True)
class Stop:
    """The decision to stop: at which step, because of which anomaly, and the incident that it belongs to."""

    step: int
    index: int
    type: str
    severity: str
    message: str
    dry_run: bool = False
    incident: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The decision as reports hold it."""
        return asdict(self)


class TrainingStopped(RLDKError):
    """Raised in trainers that have no other way to stop; everything is written by then, and `decision` says why."""

    def __init__(self, decision: Stop, checkpoint: str | None = None) -> None:
        self.decision = decision
        self.checkpoint = checkpoint
        kept = f" The checkpoint of this step is in {checkpoint}." if checkpoint else ""
        advice = f" What to do: {decision.incident['advice']}" if decision.incident.get("advice") else ""
        super().__init__(f"rldk stopped the run at step {decision.step}: {decision.message}{kept}{advice}")


class Stopper:
    """Decides whether to stop: on the first anomaly of that severity that has stood for `confirm` more events.

    Args:
        stop_on: `critical`, `warning` (a critical one then counts too), or `None` for never.
        confirm: for how many further events it must still stand; 0 stops at once.
        dry_run: decide, but continue training.
    """

    def __init__(self, stop_on: str | None = None, confirm: int = 0, dry_run: bool = False) -> None:
        if stop_on is not None and stop_on not in SEVERITIES:
            raise UsageError(f"Expected `stop_on` to be None or one of {list(SEVERITIES)}, got {stop_on!r}.")
        if isinstance(confirm, bool) or not isinstance(confirm, int) or confirm < 0:
            raise UsageError(f"Expected `confirm` to be a whole number of at least 0, got {confirm!r}.")
        self.stop_on, self.confirm, self.dry_run = stop_on, confirm, dry_run
        self.decision: Stop | None = None

    def look(self, judge: Judge) -> Stop | None:
        """Check the run after an event; returns the decision if it is taken now."""
        if self.stop_on is None or self.decision is not None:
            return None
        wanted = SEVERITIES[SEVERITIES.index(self.stop_on) :]
        now = judge.engine.events - 1
        ripe = [one for one in judge.standing if one.severity in wanted and one.index + self.confirm <= now]
        if not ripe:
            return None
        self.decision = _decide(min(ripe, key=lambda one: one.index), judge, self.dry_run)
        return self.decision

    def state_dict(self) -> dict[str, Any] | None:
        return None if self.decision is None else self.decision.to_dict()

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        self.decision = None if state is None else Stop(**state)


def _decide(anomaly: Anomaly, judge: Judge, dry_run: bool) -> Stop:
    engine, anomalies = judge.engine, judge.anomalies
    number = next(number for number, one in enumerate(anomalies) if one is anomaly)
    incidents = group_incidents(anomalies, engine.events, engine.cleared_steps)
    own = next((incident for incident in incidents if number in incident.anomalies), None)
    return Stop(
        engine.last_step or 0, engine.events - 1, anomaly.type, anomaly.severity, anomaly.message, dry_run,
        strict(own.to_dict()) if own else {},
    )  # fmt: skip
