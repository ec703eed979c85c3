"""The whitening of the advantages is broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, whitened
from rldk.signals.series import EARLY

__all__ = ["AdvantageNormalization"]


class AdvantageNormalization(Detector):
    """Advantages that should be whitened no longer are.

    What it catches: advantages that are logged as whitened, or had mean 0 and spread 1 from the start, and whose mean is now
        0.25 away from 0, or whose spread is 1.5 times its normal, for ten rows.
    Why it matters: whitening gives mean 0 and spread 1 by arithmetic: if it does not, the code or the mask has changed during
        the run, or an outlier has overflowed the sums.
    When it misfires: a spread below 1 is normal where groups of equal rewards contribute zeros, and is not judged.
    What to do: check the mask and the dimension over which the advantages are whitened, the epsilon in the division, and
        whether all processes use the same mean and spread.
    References: Huang et al. 2024, The N+ Implementation Details of RLHF with PPO.
    """

    __slots__ = ("off", "wide")
    type: ClassVar[str] = "advantage_normalization_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_mean", "advantage_std"),)
    panels: ClassVar = ("advantages", "advantage_std")
    reads: ClassVar = KIND
    advice: ClassVar[str] = (
        "Check the mask and the dimension of the whitening, its epsilon, and that all processes share its mean and spread."
    )
    clauses: ClassVar = {
        "mean_off": Clause(
            "the mean of whitened advantages is far from 0", "warning", "definition: whitening gives a mean of 0",
            persist=10, min_rows=8,
        ),
        "spread_off": Clause(
            "the spread of whitened advantages is far above 1", "warning",
            "definition: whitening gives a spread of 1", persist=10, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "off": Setting(0.25, "distance of the mean from 0", min=0.0),
        "wide": Setting(1.5, "factor over its normal (at least 1) that the spread may reach", min=1.0),
    }
    off: float
    wide: float

    def find(self, view: View) -> Sequence[Finding]:
        mean, std = view.get("advantage_mean"), view.get("advantage_std")
        shifted = abs(mean.level) > self.off
        if not shifted and not std.level > self.wide:
            return ()
        if max(mean.n, std.n) < EARLY or not whitened(view):
            return ()
        began, normal = mean.base, std.base
        if shifted and not abs(began) > 0.5 * self.off:
            message = f"The mean of whitened advantages is {mean.level:.3g}."
            return (Finding("", mean.level, self.off, message, {"mean": mean.level, "std": std.level}, clause="mean_off"),)
        limit = self.wide * max(normal, 1.0)
        if not std.level > limit:
            return ()
        message = f"The spread of whitened advantages is {std.level:.3g}; it was {normal:.3g}."
        return (Finding("", std.level, limit, message, {"mean": mean.level, "std": std.level}, clause="spread_off"),)
