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


_T = "the trend in units of its error: within ±2 it may be chance"

MEASURES: dict[str, Measure] = {
    "current_kl": Measure("logged last", "nats"),
    "kl_mean": Measure("mean of the window", "nats"),
    "kl_std": Measure("standard deviation in the window", "nats"),
    "kl_trend": Measure("change from one value to the next", "nats"),
    "kl_trend_t": Measure(_T),
    "kl_volatility": Measure("noise as a share of noise and level: 0 is a smooth line, 0.5 noise as large as the KL", "of 1"),
    "kl_target": Measure("what the KL should be", "nats"),
    "kl_target_tolerance": Measure("how far from the target the range reaches", "nats"),
    "time_in_target_range": Measure("share of all values inside the range of the target", "of 1", "low"),
    "target_range_stability": Measure("the same over the window; below the range counts half", "of 1", "low"),
    "target_range_violations": Measure("how often the KL has left the range", "times"),
    "violation_length": Measure("for how many values it is outside now", "values"),
    "longest_violation": Measure("for how many values it was outside at most", "values"),
    "current_kl_coef": Measure("weight of the KL penalty, logged last"),
    "coef_trend": Measure("relative change of the coefficient from one value to the next", "of itself"),
    "coef_change_rate": Measure("mean size of these changes", "of itself"),
    "coef_adaptive": Measure("whether the coefficient has ever moved"),
    "coef_stuck": Measure("whether it has stopped moving while the KL is outside the range", bad="yes"),
    "controller_responsiveness": Measure("how often it moved the right way while the KL was outside the range", "of 1", "low"),
    "controller_overshoot": Measure("how far the KL swung beyond the other side of the target", "of the excursion"),
    "controller_oscillation": Measure("0 for a coefficient that hardly turns, towards 1 with more turns", "of 1", "high"),
    "policy_grad_norm": Measure("norm of the policy's gradients, logged last"),
    "value_grad_norm": Measure("norm of the value function's gradients, logged last"),
    "total_grad_norm": Measure("norm of all gradients, logged last"),
    "policy_value_ratio": Measure("the policy's norm over the value function's", "times"),
    "ratio_trend": Measure("relative change of the ratio from one pair to the next", "of itself"),
    "ratio_trend_t": Measure(_T),
    "policy_grad_trend": Measure("relative change of the policy's norm from one value to the next", "of itself"),
    "gradient_flow_health": Measure("1 for norms between 0.1 and 10, or near the run's own start", "of 1", "low"),
    "gradient_balance": Measure("1 for a ratio within a factor of 10 of 1, or of the run's own", "of 1", "low"),
    "gradient_stability": Measure("1 for noise up to a factor of 2, or what the run began with", "of 1", "low"),
    "exploding_gradient_risk": Measure("1 at the upper end of the usual norms", "of 1", "high"),
    "vanishing_gradient_risk": Measure("1 at their lower end, or for norms of 0 one after another", "of 1", "high"),
    "gradient_imbalance_risk": Measure("1 for a ratio one and a half decades off", "of 1", "high"),
    "training_stability": Measure("of the gradients alone: 1 is steady", "of 1", "low"),
    "advantage_mean": Measure("logged last, or of the last sample"),
    "advantage_std": Measure("standard deviation, logged last"),
    "advantage_min": Measure("smallest"),
    "advantage_max": Measure("largest"),
    "advantage_median": Measure("half are below"),
    "advantage_p5": Measure("5 % are below"),
    "advantage_p25": Measure("25 % are below"),
    "advantage_p75": Measure("75 % are below"),
    "advantage_p95": Measure("95 % are below"),
    "advantage_skewness": Measure("0 is symmetric, above 0 a few large advantages"),
    "advantage_kurtosis": Measure("0 is normal, above 0 more extreme advantages"),
    "advantage_bias": Measure("distance of the mean from 0", "standard deviations"),
    "advantage_scale_stability": Measure("1 while the spread varies by up to a factor of 2", "of 1", "low"),
    "advantage_normalization_health": Measure("share of the window in which whitened advantages are white", "of 1", "low"),
    "advantage_mean_trend": Measure("change of the mean from one value to the next"),
    "advantage_mean_trend_t": Measure(_T),
    "advantage_std_trend": Measure("relative change of the spread from one value to the next", "of itself"),
    "advantage_volatility": Measure("noise of the mean about its trend", "standard deviations"),
    "advantage_bias_risk": Measure("risk that a biased mean pushes every action the same way", "of 1", "high"),
    "advantage_scale_risk": Measure("risk from a spread that grows or vanishes", "of 1", "high"),
    "advantage_distribution_risk": Measure("risk from a few advantages that outweigh all others", "of 1", "high"),
    "whitened": Measure("whether mean 0 and spread 1 hold by construction"),
    "sample_count": Measure("responses in the window", "responses"),
    "rank_correlation": Measure("Spearman's correlation of length and reward: 1 rewards length alone", "from -1 to 1"),
    "linear_correlation": Measure("Pearson's correlation of length and reward", "from -1 to 1"),
    "correlation_trend": Measure("change of the rank correlation from one update to the next"),
    "correlation_trend_t": Measure(_T),
    "mean_response_length": Measure("of the window", "tokens"),
    "threshold": Measure("correlation from which length bias is reported"),
    "detected": Measure("whether the correlation is at or above the threshold, on enough samples", bad="yes"),
    "enabled": Measure("whether length bias is measured"),
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
