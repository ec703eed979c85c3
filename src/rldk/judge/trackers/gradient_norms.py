"""Gradient norms of policy and value function: do they flow, are they balanced, are they steady?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan

from rldk.core.stats.base import check_window
from rldk.judge.scores.formulas import clip, combine, within
from rldk.judge.trackers.gradient_norms_metrics import GradientNormsMetrics, make_gradient_metrics
from rldk.judge.trackers.norm import DECADE, Norm
from rldk.judge.trackers.snapshot import number
from rldk.judge.trackers.tracker import Tracker

__all__ = ["GradientNormsAnalyzer", "GradientNormsMetrics"]

CLEAR_TREND = 3.0
NEAR = 0.5  # decades by which policy and value norms may differ without risk


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
        self.window_size = check_window("window_size", window_size, least=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._policy, self._total, self._ratio = [Norm(self.window_size) for _ in range(3)]
        self._value = Norm()

    def update(
        self,
        step: int,
        policy_grad_norm: float | None = None,
        value_grad_norm: float | None = None,
        total_grad_norm: float | None = None,
    ) -> GradientNormsMetrics:
        """Take what was logged at a step; what is `None` or NaN was not."""
        self.observe(
            step,
            number("policy_grad_norm", policy_grad_norm),
            number("value_grad_norm", value_grad_norm),
            number("total_grad_norm", total_grad_norm),
        )
        return self.metrics()

    def observe(self, step: int, policy: float, value: float, total: float) -> None:
        """As `update`, without the record."""
        self.step = step
        self._take([policy], [value], [total])

    def take_rows(self, rows: Iterable[tuple[int, Mapping[str, float]]]) -> bool:
        """Take what was logged at several steps; whether there was anything of this in them."""
        policy, value, total, step = [], [], [], None
        for at, metrics in rows:
            if "policy_grad_norm" in metrics or "grad_norm" in metrics or "value_grad_norm" in metrics:
                get, step = metrics.get, at
                policy.append(get("policy_grad_norm", nan))
                value.append(get("value_grad_norm", nan))
                total.append(get("grad_norm", nan))
        if step is None:
            return False
        self.step = step
        self._take(policy, value, total)
        return True

    def _take(self, policy: list[float], value: list[float], total: list[float]) -> None:
        logged = [norm for norm in policy if norm == norm]
        self.values += len(logged)
        self._policy.extend(logged)
        self._ratio.extend([p / v for p, v in zip(policy, value, strict=True) if p > 0.0 and v > 0.0])
        self._value.extend([norm for norm in value if norm == norm])
        self._total.extend([norm for norm in total if norm == norm])

    def metrics(self) -> GradientNormsMetrics:
        """What is known now, as a record that later updates do not change."""
        policy, value, ratio = self._policy, self._value, self._ratio
        main = policy if policy.last == policy.last else self._total
        if main.last != main.last and value.last != value.last:
            return make_gradient_metrics(self.step)
        _, spread, slope, _, _ = main.trend.line()
        _, _, ratio_slope, ratio_t, ratio_rise = ratio.trend.line()
        flow, exploding, vanishing = _flow(main, value)
        away = ratio.away()
        steadiness = within(spread, main.usual)
        balance = within(away, 1.0)
        drift = within(abs(ratio_rise), DECADE) if abs(ratio_t) > CLEAR_TREND else within(ratio_t, CLEAR_TREND)
        health = (flow, balance, 1.0 - exploding, 1.0 - vanishing)
        stability = (steadiness, drift, 1.0 - exploding)
        return make_gradient_metrics(
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
