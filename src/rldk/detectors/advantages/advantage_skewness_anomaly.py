"""The advantages are skewed far to one side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, at_its_best
from rldk.signals.series import EARLY

__all__ = ["AdvantageSkewness"]


class AdvantageSkewness(Detector):
    """A few extreme samples on one side dominate the update.

    What it catches: a skewness beyond 8 that is three times what it was at the start, for twenty rows. (An exponential
        distribution has 2; one success in a hundred has 10.)
    Why it matters: the update comes from the few samples in the long tail: it is noisy, and an exploit found by one sample is
        learnt at once.
    When it misfires: where nearly all samples succeed the few failures are rightly outliers, and it is silent while the
        reward is at its best. Whitening does not change the skewness. Two-sided tails are `advantage_kurtosis_anomaly`.
    What to do: clip rewards and advantages, read the samples in the tail, use more samples per prompt.
    References: Joanes and Gill 1998, Comparing measures of sample skewness and kurtosis.
    """

    __slots__ = ("limit", "moved")
    type: ClassVar[str] = "advantage_skewness_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_skewness",),)
    panels: ClassVar = ("advantage_shape", "advantages")
    reads: ClassVar = (*KIND, "advantage_kurtosis")
    advice: ClassVar[str] = "Clip rewards and advantages, read the samples in the tail, and use more samples per prompt."
    clauses: ClassVar = {
        "skewed": Clause(
            "the advantages are extremely skewed", "warning", "tune split: the largest of 86 sound runs is 5.9",
            persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "limit": Setting(8.0, "skewness, in either direction", min=0.0),
        "moved": Setting(3.0, "factor over its start that the skewness must reach", min=1.0),
    }
    limit: float
    moved: float

    def find(self, view: View) -> Sequence[Finding]:
        skewness = view.get("advantage_skewness")
        level = skewness.level
        if -self.limit <= level <= self.limit or skewness.n < EARLY:
            return ()
        limit = max(self.limit, self.moved * abs(skewness.base), abs(skewness.base) + 5.0 * skewness.scale)
        if not abs(level) > limit or view.get("advantage_kurtosis").level > 2.0 * level * level or at_its_best(view):
            return ()
        message = f"The skewness of the advantages is {level:.3g}; it started at {skewness.base:.3g}."
        return (Finding("warning", level, limit if level > 0 else -limit, message, {"skewness": level, "normal": skewness.base}),)
