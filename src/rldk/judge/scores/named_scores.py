"""All scores of a run by name, lowered by the given anomalies."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from rldk.core.anomaly import Anomaly
from rldk.judge.engine import Engine
from rldk.judge.scores.alarms import alarm, alarmed
from rldk.judge.scores.overall import convergence, gradient_health, health, stability
from rldk.judge.trackers.all_trackers import Trackers

__all__ = ["named_scores"]


def named_scores(trackers: Trackers, engine: Engine, anomalies: Sequence[Anomaly]) -> dict[str, float]:
    """Every score, lowered by these anomalies; scores without evidence are omitted.

    With the standing anomalies these are the scores now; with all anomalies of the run, its scores at its worst.
    """
    kl, gradients, advantages, length = trackers.records()

    def under(name: str, score: float) -> float:
        return alarmed(score, alarm(anomalies, name))

    found = {
        "overall_health": health(kl, gradients, advantages, length, engine, alarm(anomalies, "overall_health"))[0],
        "training_stability": stability(kl, gradients, advantages, engine, alarm(anomalies, "training_stability"))[0],
        "convergence_quality": convergence(advantages, engine, alarm(anomalies, "convergence_quality"))[0],
        "kl_health": under("kl_health", kl.kl_health_score if kl else nan),
        "schedule_health": under("schedule_health", kl.schedule_health_score if kl else nan),
        "gradient_health": under("gradient_health", gradient_health(gradients, engine)),
        "advantage_health": under("advantage_health", advantages.advantage_health_score if advantages else nan),
        "advantage_quality": under("advantage_quality", advantages.advantage_quality_score if advantages else nan),
        "length_bias": under("length_bias", length.length_bias_score if length else nan),
    }
    return {name: score for name, score in found.items() if score == score}
