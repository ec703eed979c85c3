"""The analysis, the health summary and the length-bias analysis: views of the one result, as strict JSON."""

from __future__ import annotations

from typing import Any

from rldk.core.files import strict
from rldk.judge.incidents.incident import anomaly_dicts
from rldk.judge.judge import Judge
from rldk.judge.result import Result
from rldk.judge.scores.formulas import MAIN_SCORES
from rldk.judge.trackers.all_trackers import Trackers
from rldk.signals.series import Series

__all__ = ["analysis", "health_summary", "length_bias_analysis"]

VERSION = "2.0"
_NONE = Series()
_TRACKER_SCORES = {
    "kl_schedule": {"kl_health_score": "kl_health", "schedule_health_score": "schedule_health"},
    "gradient_norms": {"gradient_health_score": "gradient_health"},
    "advantage_statistics": {
        "advantage_health_score": "advantage_health",
        "advantage_quality_score": "advantage_quality",
    },
    "length_bias": {"length_bias_score": "length_bias"},
}


def analysis(judge: Judge) -> dict[str, Any]:
    """Verdict, scores, anomalies, and the summary of each tracker that is switched on."""
    result = judge.result()
    found = {
        "version": VERSION,
        "total_steps": judge.engine.events,
        "first_step": judge.engine.first_step,
        "last_step": judge.engine.last_step,
        "verdict": result.verdict,
        "state": result.state,
        "reason": result.reason,
        **_scores(result),
        "worst_scores": result.worst_scores,
        "score_parts": result.score_parts or judge.current().score_parts,
        "anomalies": anomaly_dicts(result.anomalies, result.incidents),
        "machine": [anomaly.to_dict() for anomaly in result.machine],
        "notes": result.notes,
        "trackers": _summaries(judge.trackers, result),
        "coverage": result.coverage.to_dict(),
        "inactive": [{"detector": name, "missing": missing} for name, missing in result.coverage.inactive],
    }
    return strict(found)  # type: ignore[no-any-return]


def _summaries(trackers: Trackers, result: Result) -> dict[str, Any]:
    """What each tracker knows, with the scores of the result: under the alarm of an anomaly they are lower."""
    found = {name: tracker.get_summary() for name, tracker in trackers.by_name().items() if tracker is not None}
    if "length_bias" in found:
        found["length_bias"] = length_bias_analysis(trackers)
    for name, summary in found.items():
        for key, score in _TRACKER_SCORES[name].items():
            if score in result.scores:
                summary[key] = result.scores[score]
    return found


def health_summary(judge: Judge) -> dict[str, Any]:
    """The run in a few numbers. The status says what the verdict says; `state` is how the run stands now."""
    result, series = judge.result(), judge.engine.series
    severities = [anomaly.severity for anomaly in result.anomalies]
    found = {
        "status": result.status,
        "verdict": result.verdict,
        "state": result.state,
        "reason": result.reason,
        **_scores(result),
        "worst_overall_health_score": result.worst_scores.get("overall_health"),
        "total_anomalies": len(severities),
        "critical_anomalies": severities.count("critical"),
        "warning_anomalies": severities.count("warning"),
        "standing_anomalies": len(result.standing),
        "machine_findings": len(result.machine),
        "coverage_level": result.coverage.level,
        "coverage": result.coverage.sentence,
        "current_step": judge.engine.last_step,
        "current_kl": series.get("kl_mean", _NONE).last,
        "current_kl_coef": series.get("kl_coef", _NONE).last,
        "current_reward_mean": series.get("reward_mean", _NONE).last,
        "current_entropy": series.get("entropy_mean", _NONE).last,
    }
    return strict(found)  # type: ignore[no-any-return]


def _scores(result: Result) -> dict[str, float | None]:
    """The three overall scores by the contract's names; those without evidence are `None`."""
    return {f"{name}_score": result.scores.get(name) for name in MAIN_SCORES}


def length_bias_analysis(trackers: Trackers) -> dict[str, Any]:
    """Length bias by itself."""
    if trackers.length is None:
        return {"enabled": False, "detected": False}
    summary = trackers.length.get_summary()
    advice = "Control the reward for length, or normalise it by length, and look at the longest responses that score well."
    return {"enabled": True, **summary, "recommendations": [advice] if summary["detected"] else []}
