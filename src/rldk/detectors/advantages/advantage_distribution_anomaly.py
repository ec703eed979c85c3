"""The distribution of the advantages has degenerated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, at_its_best, without_baseline
from rldk.signals.series import EARLY

__all__ = ["AdvantageDistribution"]


class AdvantageDistribution(Detector):
    """Nearly all advantages have become the same, or all have the same sign.

    What it catches: the middle ninety percent of the advantages cover less than a fiftieth of their range, a tenth of their
        share at the start; or the lowest advantage is above 0 (the highest below), after a start with both signs.
    Why it matters: in the first case a few outliers determine the whole update; in the second the sign of the advantage no longer
        separates good from bad samples, and all are pushed in the same direction.
    When it misfires: where nearly all samples succeed, most advantages are rightly 0: it is silent while the reward is at its
        best. An estimator without baseline may have one sign only, and is recognised. Whitening changes neither.
    What to do: clip rewards and advantages, look at the samples at both ends, and check the baseline that is subtracted.
    References: Shao et al. 2024, DeepSeekMath (group-relative advantages).
    """

    __slots__ = ("fall", "share")
    type: ClassVar[str] = "advantage_distribution_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_min",), ("advantage_max",))
    panels: ClassVar = ("advantages", "advantage_shape")
    reads: ClassVar = (*KIND, "advantage_p5", "advantage_p95")
    advice: ClassVar[str] = (
        "Clip rewards and advantages, look at the samples at both ends, and check the baseline that is subtracted."
    )
    clauses: ClassVar = {
        "outliers": Clause(
            "a few outliers determine the range of the advantages", "warning", "a judgement: 2 % of the range",
            persist=20, min_rows=8,
        ),
        "one_sign": Clause(
            "all advantages have the same sign", "warning",
            "definition: with a baseline there are advantages of both signs", persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.02, "share of the range that the middle ninety percent must cover", min=0.0, max=1.0),
        "fall": Setting(10.0, "part of its share at the start to which it must have fallen", min=1.0),
    }
    share: float
    fall: float

    def find(self, view: View) -> Sequence[Finding]:
        lowest, highest = view.get("advantage_min"), view.get("advantage_max")
        low, high = lowest.level, highest.level
        if low > 0.0 or high < 0.0:
            return self._one_sign(view, low, high)
        top, bottom = view.get("advantage_p95"), view.get("advantage_p5")
        middle, span = top.level - bottom.level, high - low
        if not 0.0 <= middle < self.share * span or top.n < EARLY:
            return ()
        whole = highest.base - lowest.base
        began = (top.base - bottom.base) / whole if whole > 0.0 else 0.0
        limit = min(self.share, began / self.fall)
        if not middle < limit * span or at_its_best(view):
            return ()
        share = middle / span
        message = f"The middle ninety percent of the advantages cover {share:.2%} of their range; at first it was {began:.0%}."
        evidence = {"share": share, "share_start": began, "min": low, "max": high}
        return (Finding("", share, limit, message, evidence, clause="outliers"),)

    def _one_sign(self, view: View, low: float, high: float) -> Sequence[Finding]:
        lowest, highest = view.get("advantage_min"), view.get("advantage_max")
        if lowest.n < EARLY or not lowest.base < 0.0 < highest.base or without_baseline(view):
            return ()
        end = low if low > 0.0 else high
        message = f"All advantages have the same sign ({low:.3g} to {high:.3g}); at the start they had both."
        return (Finding("", end, 0.0, message, {"min": low, "max": high}, clause="one_sign"),)
