"""The judgement of a finished run: verdict, scores, coverage, anomalies and incidents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rldk.core.catalog import CATALOG
from rldk.core.event import Event
from rldk.forensics.config import ScanConfig
from rldk.forensics.engine import Engine
from rldk.forensics.incidents import Incident, group_incidents
from rldk.runs.run import Run

__all__ = ["Judgement", "judge_run", "verdict_of"]

_JUDGED = frozenset({"kl", "reward", "advantage", "value", "preference"})
_ENOUGH_EVENTS = 5


@dataclass(slots=True)
class Judgement:
    """What a scan says of a run."""

    run: Run
    engine: Engine
    verdict: str
    reason: str
    scores: dict[str, float]
    incidents: list[Incident]

    @property
    def would_stop(self) -> dict[str, int] | None:
        """Where the first critical was raised: where a run told to stop on it would have stopped."""
        first = next((anomaly for anomaly in self.engine.anomalies if anomaly.severity == "critical"), None)
        return None if first is None else {"step": first.step, "index": first.index}

    def to_dict(self, skipped_lines: int = 0) -> dict[str, Any]:
        """The judgement as `rldk scan --json` prints it."""
        run, engine = self.run, self.engine
        return {
            "path": str(run.path),
            "adapter": run.adapter,
            "framework": run.framework,
            "run_id": run.run_id,
            "kind": run.kind,
            "events": len(run),
            "first_step": int(run.steps[0]) if len(run) else None,
            "last_step": int(run.steps[-1]) if len(run) else None,
            "skipped_lines": skipped_lines,
            "verdict": self.verdict,
            "reason": self.reason,
            "scores": self.scores,
            "coverage": {
                "metrics": run.coverage.metrics,
                "reductions": run.coverage.reductions,
                "unmapped": run.coverage.unmapped,
                "inactive": [{"detector": name, "missing": lacking} for name, lacking in engine.inactive()],
            },
            "anomalies": [anomaly.to_dict() for anomaly in engine.anomalies],
            "incidents": [incident.to_dict() for incident in self.incidents],
            "would_stop": self.would_stop,
            "notes": run.notes,
        }


def judge_run(run: Run, config: ScanConfig | None = None) -> Judgement:
    """Judge a run from its first event to its last."""
    engine = (config or ScanConfig()).engine(run.coverage.reductions)
    for event in training_events(run):
        engine.observe(event)
    verdict, reason = verdict_of(engine)
    incidents = group_incidents(engine.anomalies, engine.events)
    return Judgement(run, engine, verdict, reason, {}, incidents)


def training_events(run: Run) -> Iterator[Event]:
    """The run's events; they are what a live monitor would have seen."""
    return run.events()


def verdict_of(engine: Engine) -> tuple[str, str]:
    """The worst that was found; `no_data` where there was nothing to judge by, never `healthy`."""
    severities = {anomaly.severity for anomaly in engine.anomalies}
    for severity in ("critical", "warning"):
        if severity in severities:
            count = sum(anomaly.severity == severity for anomaly in engine.anomalies)
            return severity, f"{count} {severity} {'anomaly' if count == 1 else 'anomalies'}"
    judged = [
        name
        for name, series in engine.series.items()
        if series.n >= _ENOUGH_EVENTS and (entry := CATALOG.get(name)) is not None and entry.group in _JUDGED
    ]
    if engine.events < _ENOUGH_EVENTS:
        return "no_data", f"only {engine.events} event{'' if engine.events == 1 else 's'}: too few to judge"
    if not judged:
        return "no_data", "no metric of reinforcement learning to judge by (reward, KL, advantage, value or preference)"
    return "healthy", f"nothing found by {len(engine.detectors) - len(engine.inactive())} active detectors"
