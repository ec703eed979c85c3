"""The ratio of policy to value gradient drifts one way."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.drift import BLOCK, BlockDrift

__all__ = ["RatioTrend"]

EVEN = 0.6  # share of the whole way that one block may make: more is a jump
EXTREME = 100.0  # above this ratio it is `gradient_imbalance_anomaly`


class RatioTrend(Detector):
    """The ratio of policy to value gradient moves steadily in one direction.

    What it catches: the mean (of the logarithm) of the ratio over blocks of 25 rows has moved the same way four times in a
        row, each time by at least a tenth of the whole change, and by a factor of ten in all. A jump is not a trend: that is
        `gradient_balance_anomaly`.
    Why it matters: it leads slowly to `gradient_imbalance_anomaly` and can be corrected before that.
    When it misfires: the first fifty rows, in which a new value function finds its level, do not count.
    What to do: find out which of the two norms moves. If the value gradient grows, use a smaller value coefficient or
        learning rate, or normalise returns; if it vanishes, the value function no longer learns and the advantages are noise.
    References: Andrychowicz et al. 2021, What Matters in On-Policy Reinforcement Learning?
    """

    __slots__ = ("_drift", "factor", "trend")
    type: ClassVar[str] = "ratio_trend_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (("policy_grad_norm",), ("value_grad_norm",))
    panels: ClassVar = ("gradient_ratio", "gradients")
    advice: ClassVar[str] = "Find which of the two norms moves; lower the coefficient or learning rate of the side that grows."
    clear: ClassVar[int] = 1
    clauses: ClassVar = {
        "drifts": Clause(
            "the ratio of policy to value gradient drifts tenfold in one direction", "warning",
            "four similar changes in one direction are not chance; tenfold is a judgement",
        ),
    }  # fmt: skip
    settings: ClassVar = {"factor": Setting(10.0, "factor by which the ratio must have moved over four blocks", min=1.0)}
    factor: float
    trend: float
    _drift: BlockDrift

    def reset(self) -> None:
        super().reset()
        self._drift = BlockDrift()
        self.trend = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        p, v = view.get("policy_grad_norm").level, view.get("value_grad_norm").level
        drift = self._drift
        if p > 0.0 < v and drift.add(log(p) - log(v)):
            change = drift.change(EVEN)
            self.trend = change if abs(change) > log(self.factor) and abs(drift.after) < log(EXTREME) else 0.0
        if not self.trend:
            return ()
        moved, before, after = (exp(min(power, 50.0)) for power in (self.trend, drift.before, drift.after))
        message = f"The ratio of policy to value gradient has moved from {before:.3g} to {after:.3g} in {BLOCK * 4} rows."
        limit = self.factor if self.trend > 0.0 else 1.0 / self.factor
        return (Finding("warning", moved, limit, message, {"ratio": after, "ratio_before": before}),)
