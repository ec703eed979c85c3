"""The gradient norm has left the healthy range in which the run started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.detectors.gradients.norms import NO_SIGNAL, lacks_signal
from rldk.signals.optimizer import NORMS, gradient_norm
from rldk.signals.series import EARLY

__all__ = ["GradientFlow"]

MARGIN = 3.0


class GradientFlow(Detector):
    """The gradient norm started between 0.1 and 10 and is now well outside.

    What it catches: a run whose own normal lies in the healthy range, and whose norm stays three times above or below that
        range and at least a factor of five from its normal. Ten times the normal (an explosion) and a hundredth of it
        (vanishing) have their own detectors and are not reported here.
    Why it matters: clipping, Adam's epsilon and half precision are all set for gradients near 1.
    When it misfires: many runs are outside the range from the start (0.006 with long sequences, 30 for small models); this is
        normal for them and is not judged. Norms that alternate with 0 never stay low for thirty rows.
    What to do: above, lower the learning rate or the loss coefficients and look at outliers among the advantages; below,
        check whether the loss is averaged over more tokens than before, and whether rewards still differ.
    References: Andrychowicz et al. 2021, What Matters in On-Policy Reinforcement Learning?
    """

    __slots__ = ("change", "high", "low")
    type: ClassVar[str] = "gradient_flow_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (NORMS,)
    panels: ClassVar = ("gradients",)
    reads: ClassVar = NO_SIGNAL
    advice: ClassVar[str] = (
        "If it is high, lower the learning rate or the loss coefficients; if it is low, check how the loss is averaged."
    )
    clauses: ClassVar = {
        "left_range": Clause(
            "the gradient norm left the range of 0.1 to 10 in which it started", "warning",
            "a judgement: recipes clip at 0.1 to 10; norms cannot be compared across models, so only runs that "
            "started inside are judged", persist=30, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "low": Setting(0.1, "lower end of the healthy range", min=0.0),
        "high": Setting(10.0, "upper end of the healthy range", min=0.0),
        "change": Setting(5.0, "factor by which the norm must have changed from its own normal", min=1.0),
    }
    low: float
    high: float
    change: float

    def find(self, view: View) -> Sequence[Finding]:
        norm = gradient_norm(view)
        normal = norm.base
        if not self.low <= normal <= self.high or norm.n < EARLY or norm.nonfinite_run:
            return ()
        level = norm.level
        if level > MARGIN * self.high:
            if not self.change * normal < level <= 10.0 * max(normal, norm.scale):
                return ()
            limit = max(MARGIN * self.high, self.change * normal)
        elif level < self.low / MARGIN:
            limit = min(self.low / MARGIN, normal / self.change)
            if not 0.01 * normal < norm.last < limit or lacks_signal(view, 1.0 / self.change):
                return ()
        else:
            return ()
        outside = f"outside the range of {self.low:g} to {self.high:g}"
        message = f"The gradient norm is {level:.3g}, {outside}; it started at {normal:.3g}."
        return (Finding("warning", level, limit, message, {"norm": level, "normal": normal}),)
