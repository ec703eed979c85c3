"""The judgement of a finished run: verdict, scores, coverage, anomalies and incidents."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Any

from rldk.core.catalog import CATALOG
from rldk.judge.config import ScanConfig
from rldk.judge.engine import Engine
from rldk.judge.incidents.incident import Incident, group_incidents
from rldk.judge.judge import Judge
from rldk.judge.scores.formulas import alarm_factor
from rldk.runs.run import Run

__all__ = ["Judgement", "judge_run", "scores_of", "verdict_of"]

_JUDGED = frozenset({"kl", "reward", "advantage", "value", "preference"})
_ENOUGH_EVENTS = 10


@dataclass(slots=True)
class Judgement:
    """What a scan says of a run; `score_parts` has what each score is made of."""

    run: Run
    engine: Engine
    verdict: str
    reason: str
    scores: dict[str, float]
    incidents: list[Incident]
    score_parts: dict[str, dict[str, float]] = field(default_factory=dict)

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
    """Judge a run from its first event to its last, by the very engine that a live monitor has."""
    judge = (config or ScanConfig()).judge(run.coverage.reductions)
    for event in run.events():
        judge.take(event)
    engine = judge.engine
    verdict, reason = verdict_of(engine)
    incidents = group_incidents(engine.anomalies, engine.events)
    if verdict == "no_data":
        return Judgement(run, engine, verdict, reason, {}, incidents)  # a score would say that something was judged
    return Judgement(run, engine, verdict, reason, scores_of(judge), incidents, judge.current().score_parts)


def scores_of(judge: Judge) -> dict[str, float]:
    """All scores by name; those without evidence are left out. A tracker's falls while an anomaly of its family stands."""
    now = judge.current()
    kl, gradients, advantages, length = judge.trackers.records()

    def family(tracker: str) -> float:
        return alarm_factor(anomaly.severity for anomaly in judge.engine.standing if anomaly.tracker == tracker)

    found = {
        "overall_health": now.overall_health_score,
        "training_stability": now.training_stability_score,
        "convergence_quality": now.convergence_quality_score,
        "kl_health": family("kl_schedule") * kl.kl_health_score if kl else nan,
        "schedule_health": family("kl_schedule") * kl.schedule_health_score if kl else nan,
        "gradient_health": family("gradient_norms") * gradients.gradient_health_score if gradients else nan,
        "advantage_health": family("advantage_statistics") * advantages.advantage_health_score if advantages else nan,
        "advantage_quality": family("advantage_statistics") * advantages.advantage_quality_score if advantages else nan,
        "length_bias": family("length") * length.length_bias_score if length else nan,
    }
    return {name: score for name, score in found.items() if score == score}


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
