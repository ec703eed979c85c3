"""The advantages have grown heavy tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, at_its_best
from rldk.signals.series import EARLY

__all__ = ["AdvantageKurtosis"]


class AdvantageKurtosis(Detector):
    """Outliers on both sides dominate the update.

    What it catches: an excess kurtosis above 50 that is five times what it was at the start, for twenty rows, and that
        skewness does not explain. (A normal distribution has 0, an exponential one 6.)
    Why it matters: with such tails the mean gradient of a batch is determined by its outliers.
    When it misfires: one-sided tails have a large kurtosis too (never less than the squared skewness minus 2) and are
        `advantage_skewness_anomaly`; where nearly all samples succeed it is silent. Whitening does not change kurtosis.
    What to do: clip rewards and advantages, look for outliers of the value function, and lower the lambda of the advantage
        estimation.
    References: Garg et al. 2021, On Proximal Policy Optimization's Heavy-tailed Gradients.
    """

    __slots__ = ("limit", "moved")
    type: ClassVar[str] = "advantage_kurtosis_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_kurtosis",),)
    panels: ClassVar = ("advantage_shape", "advantages")
    reads: ClassVar = (*KIND, "advantage_skewness")
    advice: ClassVar[str] = (
        "Clip rewards and advantages, look for outliers of the value function, and lower the lambda of the estimation."
    )
    clauses: ClassVar = {
        "heavy_tails": Clause(
            "the advantages have extremely heavy tails", "warning",
            "tune split: the largest of 86 sound runs is 36", persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "limit": Setting(50.0, "excess kurtosis", min=0.0),
        "moved": Setting(5.0, "factor over its start that the kurtosis must reach", min=1.0),
    }
    limit: float
    moved: float

    def find(self, view: View) -> Sequence[Finding]:
        kurtosis = view.get("advantage_kurtosis")
        level = kurtosis.level
        if not level > self.limit or kurtosis.n < EARLY:
            return ()
        limit = max(self.limit, self.moved * abs(kurtosis.base), kurtosis.base + 5.0 * kurtosis.scale)
        skewness = view.get("advantage_skewness").level
        if level <= limit or 2.0 * skewness * skewness >= level or at_its_best(view):
            return ()
        message = f"The excess kurtosis of the advantages is {level:.3g}; it started at {kurtosis.base:.3g}."
        return (Finding("warning", level, limit, message, {"kurtosis": level, "normal": kurtosis.base}),)
