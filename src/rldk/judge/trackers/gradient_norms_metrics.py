"""What is known of the gradients after an update."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from rldk.judge.scores.formulas import named
from rldk.judge.trackers.snapshot import Snapshot, quick

__all__ = ["GradientNormsMetrics", "make_gradient_metrics"]


@dataclass(frozen=True, slots=True)
class GradientNormsMetrics(Snapshot):
    """Gradient norms of policy and value function. What was not logged is NaN.

    Attributes:
        policy_grad_norm: the norm that was logged last, as are those of the value function and of all gradients.
        policy_value_ratio: the one over the other; `ratio_trend` its relative change from one pair to the next, with its
            t value.
        policy_grad_trend: relative change of the norm from one value to the next.
        gradient_flow_health: 1 for norms inside 0.1 to 10, or near the run's own baseline (docs/scores.md).
        gradient_balance: 1 for a ratio within a factor of 10 of 1, or of the run's own.
        gradient_stability: 1 for noise about the trend up to a factor of 2, or what the run itself began with.
        exploding_gradient_risk: 0 up to half a decade below the upper end of that range, 1 at the end, even by factors
            between; `vanishing_gradient_risk` likewise at the lower end, or for norms of exactly 0 one after another;
            `gradient_imbalance_risk` 0 for a ratio up to half a decade off, 1 for one and a half.
    """

    step: int = 0
    policy_grad_norm: float = nan
    value_grad_norm: float = nan
    total_grad_norm: float = nan
    policy_value_ratio: float = nan
    ratio_trend: float = nan
    ratio_trend_t: float = nan
    policy_grad_trend: float = nan
    gradient_flow_health: float = nan
    gradient_balance: float = nan
    gradient_stability: float = nan
    exploding_gradient_risk: float = nan
    vanishing_gradient_risk: float = nan
    gradient_imbalance_risk: float = nan
    gradient_health_score: float = nan
    training_stability: float = nan
    _health: tuple[float, ...] = ()
    _stability: tuple[float, ...] = ()

    @property
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The parts of the two scores, by name."""
        return {
            "gradient_health": named("gradient_health", self._health),
            "training_stability": named("training_stability", self._stability),
        }


make_gradient_metrics = quick(GradientNormsMetrics)
