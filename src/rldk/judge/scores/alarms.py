"""How anomalies lower scores, so that no score can contradict the verdict, and from which value on a score is red or yellow."""

from __future__ import annotations

from collections.abc import Iterable

from rldk.core.anomaly import Anomaly

__all__ = ["ALARMS", "FROM_SCORES", "alarm", "alarmed", "bears_on", "tone_of"]

ALARMS = {"warning": 0.7, "critical": 0.3}
"""The upper bound that a standing anomaly of that severity sets on a score that it affects."""

FURTHER = 0.9
"""The factor for each further type of anomaly: a score falls as evidence grows."""

FROM_SCORES = "scores"
"""The family of alerts that were themselves raised by a low score; they do not lower it further."""

_FAMILIES = {
    "kl_health": frozenset({"kl_schedule"}),
    "schedule_health": frozenset({"kl_schedule"}),
    "gradient_health": frozenset({"gradient_norms", "probe"}),
    "advantage_health": frozenset({"advantage_statistics"}),
    "advantage_quality": frozenset({"advantage_statistics"}),
    "length_bias": frozenset({"length"}),
    "convergence_quality": frozenset({"reward", "policy", "preference"}),
}
_EVERY_FAMILY = frozenset({"overall_health", "training_stability"})
_BROKEN = frozenset({"nonfinite_metric"})
"""Defects after which nothing can converge, whatever their family."""


def bears_on(anomaly: Anomaly, score: str) -> bool:
    """Whether an anomaly is evidence against what a score measures: its own family, or anything for health and stability."""
    if anomaly.family == FROM_SCORES:
        return False
    if score in _EVERY_FAMILY or (score == "convergence_quality" and anomaly.type in _BROKEN):
        return True
    return anomaly.family in _FAMILIES.get(score, ())


def alarm(anomalies: Iterable[Anomaly], score: str) -> float:
    """The factor of a score: 1 without anomalies, at most 0.7 with a warning and 0.3 with a critical one among them."""
    worst: dict[str, float] = {}
    for anomaly in anomalies:
        if bears_on(anomaly, score):
            worst[anomaly.type] = min(worst.get(anomaly.type, 1.0), ALARMS[anomaly.severity])
    if not worst:
        return 1.0
    return float(min(worst.values()) * FURTHER ** (len(worst) - 1))


def tone_of(score: float) -> str:
    """The verdict in whose colour a score of this value is shown; one that a standing anomaly has lowered is never green."""
    return "critical" if score < 0.4 else "warning" if score <= ALARMS["warning"] else "healthy"


def alarmed(score: float, factor: float) -> float:
    """A score lowered by an alarm. Without other evidence it is the alarm's factor, and NaN if there is no alarm either."""
    if score != score:
        return factor if factor < 1.0 else score
    return score * factor
