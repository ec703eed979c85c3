"""Either the policy or the value function dominates the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.series import EARLY

__all__ = ["GradientImbalance"]


class GradientImbalance(Detector):
    """The gradients of policy and value function differ by orders of magnitude.

    What it catches: one of the two norms is a hundred times the other, ten times more than at the start, and stays so. (A
        sudden change within these bounds is `gradient_balance_anomaly`, a steady drift `ratio_trend_anomaly`.)
    Why it matters: if both share weights or a clipping norm, the smaller one is no longer trained.
    When it misfires: the ratio of a run may be large from the start, since the two losses have different units; what counts
        is how far it has moved.
    What to do: if the value function dominates, lower the value loss coefficient or normalise returns and rewards; if the
        policy does, look for outliers among advantages and ratios. Clip the two norms separately.
    References: Cobbe et al. 2021, Phasic Policy Gradient.
    """

    __slots__ = ("factor", "moved")
    type: ClassVar[str] = "gradient_imbalance_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (("policy_grad_norm",), ("value_grad_norm",))
    panels: ClassVar = ("gradient_ratio", "gradients")
    advice: ClassVar[str] = (
        "Lower the coefficient of the side that dominates, normalise returns, and clip the two norms separately."
    )
    clauses: ClassVar = {
        "dominates": Clause(
            "policy and value gradient differ by a factor of a hundred, ten times more than at the start", "warning",
            "tune split: the ratio of 43 sound runs changes by up to 15 times; a hundred between the norms is a judgement",
            persist=10, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(100.0, "factor between the two norms", min=1.0),
        "moved": Setting(10.0, "factor over the run's own ratio at the start", min=1.0),
    }
    factor: float
    moved: float

    def find(self, view: View) -> Sequence[Finding]:
        policy, value = view.get("policy_grad_norm"), view.get("value_grad_norm")
        p, v = policy.level, value.level
        factor = self.factor
        if (p < factor * v and v < factor * p) or not (p > 0.0 < v):
            return ()
        if policy.n < EARLY or value.n < EARLY or policy.nonfinite_run or value.nonfinite_run:
            return ()
        if not (policy.base > 0.0 < value.base):
            return ()
        own = policy.base / value.base
        ratio = p / v
        if p > v:
            side, limit = "policy", max(factor, self.moved * own)
        else:
            side, limit = "value function", min(1.0 / factor, own / self.moved)
        if (ratio <= limit) == (p > v):
            return ()
        message = f"The gradient of the {side} dominates: the ratio of policy to value is {ratio:.3g}; it started at {own:.3g}."
        return (Finding("warning", ratio, limit, message, {"policy": p, "value": v, "ratio": ratio, "ratio_start": own}),)
