"""What the trackers measure, in words: the unit and the meaning of each number, and which end of it is bad."""

from __future__ import annotations

from dataclasses import dataclass

from rldk.judge.scores.alarms import tone_of

__all__ = ["MEASURES", "Measure", "tone_of_measure"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a tracker's summary. `bad` is `low` for one in [0, 1] whose 0 is bad, `high` where 1 is, or `yes`."""

    meaning: str
    unit: str = ""
    bad: str = ""


def _measure(meaning: str, unit: str = "", bad: str = "") -> Measure:
    return Measure(meaning, unit, bad)


_T = "the trend in units of its error: within ±2 it may be chance"

MEASURES: dict[str, Measure] = {
    "current_kl": _measure("logged last", "nats"),
    "kl_mean": _measure("mean of the window", "nats"),
    "kl_std": _measure("standard deviation in the window", "nats"),
    "kl_trend": _measure("change from one value to the next", "nats"),
    "kl_trend_t": _measure(_T),
    "kl_volatility": _measure("noise as a share of noise and level: 0 is a smooth line, 0.5 noise as large as the KL", "of 1"),
    "kl_target": _measure("what the KL should be", "nats"),
    "kl_target_tolerance": _measure("how far from the target the range reaches", "nats"),
    "time_in_target_range": _measure("share of all values inside the range of the target", "of 1", "low"),
    "target_range_stability": _measure("the same over the window; below the range counts half", "of 1", "low"),
    "target_range_violations": _measure("how often the KL has left the range", "times"),
    "violation_length": _measure("for how many values it is outside now", "values"),
    "longest_violation": _measure("for how many values it was outside at most", "values"),
    "current_kl_coef": _measure("weight of the KL penalty, logged last"),
    "coef_trend": _measure("relative change of the coefficient from one value to the next", "of itself"),
    "coef_change_rate": _measure("mean size of these changes", "of itself"),
    "coef_adaptive": _measure("whether the coefficient has ever moved"),
    "coef_stuck": _measure("whether it has stopped moving while the KL is outside the range", bad="yes"),
    "controller_responsiveness": _measure("how often it moved the right way while the KL was outside the range", "of 1", "low"),
    "controller_overshoot": _measure("how far the KL swung beyond the other side of the target", "of the excursion"),
    "controller_oscillation": _measure("0 for a coefficient that hardly turns, towards 1 with more turns", "of 1", "high"),
    "policy_grad_norm": _measure("norm of the policy's gradients, logged last"),
    "value_grad_norm": _measure("norm of the value function's gradients, logged last"),
    "total_grad_norm": _measure("norm of all gradients, logged last"),
    "policy_value_ratio": _measure("the policy's norm over the value function's", "times"),
    "ratio_trend": _measure("relative change of the ratio from one pair to the next", "of itself"),
    "ratio_trend_t": _measure(_T),
    "policy_grad_trend": _measure("relative change of the policy's norm from one value to the next", "of itself"),
    "gradient_flow_health": _measure("1 for norms between 0.1 and 10, or near the run's own start", "of 1", "low"),
    "gradient_balance": _measure("1 for a ratio within a factor of 10 of 1, or of the run's own", "of 1", "low"),
    "gradient_stability": _measure("1 for noise up to a factor of 2, or what the run began with", "of 1", "low"),
    "exploding_gradient_risk": _measure("1 at the upper end of the usual norms", "of 1", "high"),
    "vanishing_gradient_risk": _measure("1 at their lower end, or for norms of 0 one after another", "of 1", "high"),
    "gradient_imbalance_risk": _measure("1 for a ratio one and a half decades off", "of 1", "high"),
    "training_stability": _measure("of the gradients alone: 1 is steady", "of 1", "low"),
    "advantage_mean": _measure("logged last, or of the last sample"),
    "advantage_std": _measure("standard deviation, logged last"),
    "advantage_min": _measure("smallest"),
    "advantage_max": _measure("largest"),
    "advantage_median": _measure("half are below"),
    "advantage_p5": _measure("5 % are below"),
    "advantage_p25": _measure("25 % are below"),
    "advantage_p75": _measure("75 % are below"),
    "advantage_p95": _measure("95 % are below"),
    "advantage_skewness": _measure("0 is symmetric, above 0 a few large advantages"),
    "advantage_kurtosis": _measure("0 is normal, above 0 more extreme advantages"),
    "advantage_bias": _measure("distance of the mean from 0", "standard deviations"),
    "advantage_scale_stability": _measure("1 while the spread varies by up to a factor of 2", "of 1", "low"),
    "advantage_normalization_health": _measure("share of the window in which whitened advantages are white", "of 1", "low"),
    "advantage_mean_trend": _measure("change of the mean from one value to the next"),
    "advantage_mean_trend_t": _measure(_T),
    "advantage_std_trend": _measure("relative change of the spread from one value to the next", "of itself"),
    "advantage_volatility": _measure("noise of the mean about its trend", "standard deviations"),
    "advantage_bias_risk": _measure("risk that a biased mean pushes every action the same way", "of 1", "high"),
    "advantage_scale_risk": _measure("risk from a spread that grows or vanishes", "of 1", "high"),
    "advantage_distribution_risk": _measure("risk from a few advantages that outweigh all others", "of 1", "high"),
    "whitened": _measure("whether mean 0 and spread 1 hold by construction"),
    "sample_count": _measure("responses in the window", "responses"),
    "rank_correlation": _measure("Spearman's correlation of length and reward: 1 rewards length alone", "from -1 to 1"),
    "linear_correlation": _measure("Pearson's correlation of length and reward", "from -1 to 1"),
    "correlation_trend": _measure("change of the rank correlation from one update to the next"),
    "correlation_trend_t": _measure(_T),
    "mean_response_length": _measure("of the window", "tokens"),
    "threshold": _measure("correlation from which length bias is reported"),
    "detected": _measure("whether the correlation is at or above the threshold, on enough samples", bad="yes"),
    "enabled": _measure("whether length bias is measured"),
}
"""The numbers of all trackers' summaries by name, except for the scores."""


def tone_of_measure(name: str, value: float | bool) -> str:
    """`critical`, `warning` or `healthy` for a number that has a bad end; empty for others."""
    bad = MEASURES[name].bad if name in MEASURES else ""
    if bad == "yes":
        return "warning" if value else ""
    if bad not in ("low", "high"):
        return ""
    return tone_of(float(value) if bad == "low" else 1.0 - float(value))
