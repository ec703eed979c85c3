"""What forensics says of a run, as dictionaries of strict JSON."""

from __future__ import annotations

from typing import Any

from rldk.core.files import strict
from rldk.judge.engine import Engine
from rldk.judge.record import ComprehensivePPOMetrics
from rldk.judge.trackers.all import Trackers
from rldk.signals.series import Series

__all__ = ["analysis", "health_summary", "length_bias_analysis"]

VERSION = "2.0"
DEGRADED = 0.7  # overall health below which a run without anomalies is not called healthy
_NONE = Series()


def analysis(record: ComprehensivePPOMetrics, trackers: Trackers, engine: Engine) -> dict[str, Any]:
    """Scores, anomalies, and the summary of each tracker; `trackers` holds those that are switched on."""
    summaries = {name: tracker.get_summary() for name, tracker in trackers.by_name().items() if tracker is not None}
    if "length_bias" in summaries:
        summaries["length_bias"] = length_bias_analysis(trackers)
    found = {
        "version": VERSION,
        "total_steps": engine.events,
        "first_step": engine.first_step,
        "last_step": engine.last_step,
        **_scores(record),
        "score_parts": record.score_parts,
        "anomalies": [anomaly.to_dict() for anomaly in engine.anomalies],
        "trackers": summaries,
        "inactive": [{"detector": name, "missing": missing} for name, missing in engine.inactive()],
    }
    return strict(found)  # type: ignore[no-any-return]


def health_summary(record: ComprehensivePPOMetrics, engine: Engine) -> dict[str, Any]:
    """The run in a few numbers. The status is by what stands now: an anomaly that has cleared is history."""
    severities = [anomaly.severity for anomaly in engine.anomalies]
    found = {
        "status": _status(record, engine),
        **_scores(record),
        "total_anomalies": len(severities),
        "critical_anomalies": severities.count("critical"),
        "warning_anomalies": severities.count("warning"),
        "standing_anomalies": len(engine.standing),
        "current_step": engine.last_step,
        "current_kl": engine.series.get("kl_mean", _NONE).last,
        "current_kl_coef": engine.series.get("kl_coef", _NONE).last,
        "current_reward_mean": engine.series.get("reward_mean", _NONE).last,
        "current_entropy": engine.series.get("entropy_mean", _NONE).last,
    }
    return strict(found)  # type: ignore[no-any-return]


def _scores(record: ComprehensivePPOMetrics) -> dict[str, float]:
    return {
        "overall_health_score": record.overall_health_score,
        "training_stability_score": record.training_stability_score,
        "convergence_quality_score": record.convergence_quality_score,
    }


def _status(record: ComprehensivePPOMetrics, engine: Engine) -> str:
    """`critical` or `warning` while such an anomaly stands, `warning` also after a critical one."""
    standing = {anomaly.severity for anomaly in engine.standing}
    if "critical" in standing:
        return "critical"
    if standing or any(anomaly.severity == "critical" for anomaly in engine.anomalies):
        return "warning"
    if not any(series.n or series.nonfinite for series in engine.series.values()):
        return "no_data"
    return "degraded" if record.overall_health_score < DEGRADED else "healthy"


def length_bias_analysis(trackers: Trackers) -> dict[str, Any]:
    """Length bias by itself."""
    if trackers.length is None:
        return {"enabled": False, "detected": False}
    summary = trackers.length.get_summary()
    advice = "Control the reward for length, or normalise it by length, and look at the longest responses that score well."
    return {"enabled": True, **summary, "recommendations": [advice] if summary["detected"] else []}
