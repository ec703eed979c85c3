"""Gradient norms of policy and value function: do they flow, are they balanced, are they steady?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan

from rldk.core.stats.base import check_window
from rldk.judge.scores.formulas import clip, combine, named, within
from rldk.judge.trackers.norm import DECADE, Norm
from rldk.judge.trackers.tracker import Snapshot, Tracker, number

__all__ = ["GradientNormsAnalyzer", "GradientNormsMetrics"]

CLEAR_TREND = 3.0
NEAR = 0.5  # decades by which policy and value norms may differ without risk


@dataclass(slots=True)
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


class GradientNormsAnalyzer(Tracker):
    """Follows the gradient norms of a run, in constant time and bounded memory.

    A norm of 0.1 to 10 is healthy, and so is one within a factor of 10 of where the run itself started, or of more where
    the norms vary as much by themselves. Where policy and value norms are not logged apart, the total norm is judged.

    Args:
        window_size: how many values the rolling statistics reach back.
    """

    __slots__ = ("_policy", "_ratio", "_total", "_value", "window_size")
    parameters = ("window_size",)
    window_size: int
    _policy: Norm
    _value: Norm
    _total: Norm
    _ratio: Norm

    def __init__(self, window_size: int = 100) -> None:
        self.window_size = check_window("window_size", window_size, minimum=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._policy, self._value, self._total, self._ratio = (Norm(self.window_size) for _ in range(4))

    def update(
        self,
        step: int,
        policy_grad_norm: float | None = None,
        value_grad_norm: float | None = None,
        total_grad_norm: float | None = None,
    ) -> GradientNormsMetrics:
        """Take what was logged at a step; what is `None` or NaN was not."""
        given = {"policy_grad_norm": policy_grad_norm, "value_grad_norm": value_grad_norm, "total_grad_norm": total_grad_norm}
        policy, value, total = (number(name, norm) for name, norm in given.items())
        self._take(step, policy, value, total)
        return self.metrics()

    def observe(self, step: int, metrics: Mapping[str, float]) -> bool:
        if not ("policy_grad_norm" in metrics or "grad_norm" in metrics or "value_grad_norm" in metrics):
            return False
        get = metrics.get
        self._take(step, get("policy_grad_norm", nan), get("value_grad_norm", nan), get("grad_norm", nan))
        return True

    def _take(self, step: int, policy: float, value: float, total: float) -> None:
        self.step = step
        if policy == policy:
            self.values += 1
            self._policy.update(policy)
        if value == value:
            self._value.update(value)
        if total == total:
            self._total.update(total)
        if policy > 0.0 and value > 0.0:
            self._ratio.update(policy / value)

    def metrics(self) -> GradientNormsMetrics:
        policy, value, ratio = self._policy, self._value, self._ratio
        main = policy if policy.last == policy.last else self._total
        if main.last != main.last and value.last != value.last:
            return GradientNormsMetrics(self.step)
        _, spread, slope, _, _ = main.trend.line()
        _, _, ratio_slope, ratio_t, ratio_rise = ratio.trend.line()
        flow, exploding, vanishing = _flow(main, value)
        away = ratio.away()
        steadiness = within(spread, main.usual)
        balance = within(away, 1.0)
        drift = within(abs(ratio_rise), DECADE) if abs(ratio_t) > CLEAR_TREND else within(ratio_t, CLEAR_TREND)
        health = (flow, balance, 1.0 - exploding, 1.0 - vanishing)
        stability = (steadiness, drift, 1.0 - exploding)
        return GradientNormsMetrics(
            self.step, policy.last, value.last, self._total.last,
            ratio.last, ratio_slope, ratio_t,
            slope if main is policy else nan,
            flow, balance, steadiness, exploding, vanishing, clip(away - NEAR),
            combine(health), combine(stability), health, stability,
        )  # fmt: skip


def _flow(*norms: Norm) -> tuple[float, float, float]:
    """Flow health, and the risks of exploding and of vanishing, of the norm that is worst off."""
    large = small = nan
    dead = 0.0
    for norm in norms:
        if norm.last == norm.last:
            up, down = norm.strain()
            large = up if not up <= large else large
            small = down if not down <= small else small
            if norm.zeros:
                dead = max(dead, norm.dead())
    worst = large if large > small else small
    flow = 10.0**-worst if worst > 0.0 else 1.0 if worst == worst else nan
    exploding, vanishing = clip(2.0 * large + 1.0), clip(2.0 * small + 1.0)
    if dead:
        return (1.0 if flow != flow else flow) * (1.0 - dead), exploding, dead if not vanishing > dead else vanishing
    return flow, exploding, vanishing
