"""The balance between policy and value gradient changed suddenly."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["GradientBalance"]

MEMORY = 70  # rows over which the ratio's own range is remembered: a half-life of about 50


class GradientBalance(Detector):
    """The ratio of policy to value gradient has left its range and stays outside.

    What it catches: the ratio of the two norms has jumped to eight times (or an eighth of) what it was over about
        the last hundred rows, by six times its own spread, for twenty rows. It is silent if one side is a hundred times the
        other (`gradient_imbalance_anomaly`); a slow drift is `ratio_trend_anomaly`.
    Why it matters: something changed for only one of the two: the scale of the returns, the value function, the tail of the
        ratio.
    When it misfires: an untrained value function has a large gradient in its first rows, so the first fifty rows are not
        judged.
    What to do: look at what changed at that row: reward scale, value loss and explained variance on the one side,
        advantages and clip fraction on the other; lower the coefficient of the side that grew.
    References: Andrychowicz et al. 2021, What Matters in On-Policy Reinforcement Learning?
    """

    __slots__ = ("centre", "count", "deviation", "factor", "jump", "sigmas", "warmup")
    type: ClassVar[str] = "gradient_balance_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (("policy_grad_norm",), ("value_grad_norm",))
    panels: ClassVar = ("gradient_ratio", "gradients")
    advice: ClassVar[str] = "Look at what changed at that row for one side only, and lower the coefficient of the side that grew."
    clauses: ClassVar = {
        "shifted": Clause(
            "the ratio of policy to value gradient has changed eightfold", "warning",
            "six of the run's own spreads; 95 % of 43 sound runs of the tune split change by less than 7.5 times",
            persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(8.0, "factor by which the ratio must have changed", min=1.0),
        "sigmas": Setting(6.0, "spreads (of its logarithm) by which it must have changed", min=0.0),
        "warmup": Setting(50, "first rows that are not judged", min=5),
    }
    factor: float
    sigmas: float
    warmup: float
    centre: float
    deviation: float
    jump: float
    count: int

    def reset(self) -> None:
        super().reset()
        self.centre = self.deviation = 0.0
        self.jump = log(self.factor)
        self.count = 0

    def find(self, view: View) -> Sequence[Finding]:
        policy, value = view.get("policy_grad_norm"), view.get("value_grad_norm")
        p, v = policy.level, value.level
        if not (p > 0.0 < v) or policy.nonfinite_run or value.nonfinite_run:
            return ()
        away = log(p) - log(v) - self.centre
        size = abs(away)
        self.count = count = self.count + 1
        if size < self.jump or size < self.sigmas * self.deviation or count <= self.warmup:
            weight = 1.0 / (count if count < MEMORY else MEMORY)
            self.centre += weight * away
            self.deviation += weight * (size - self.deviation)
            return ()
        if not 0.01 * v < p < 100.0 * v:
            return ()
        usual = exp(self.centre)
        message = f"The ratio of policy to value gradient is {p / v:.3g}; it was about {usual:.3g}."
        limit = min(max(self.jump, self.sigmas * self.deviation), 50.0)
        bound = usual * exp(limit if away > 0.0 else -limit)
        return (Finding("warning", p / v, bound, message, {"policy": p, "value": v, "ratio": p / v, "ratio_before": usual}),)
