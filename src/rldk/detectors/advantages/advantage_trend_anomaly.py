"""The mean advantage drifts away from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, judges_mean
from rldk.signals.drift import BLOCK, BlockDrift

__all__ = ["AdvantageTrend"]


class AdvantageTrend(Detector):
    """The mean advantage moves steadily away from zero.

    What it catches: the mean over blocks of 25 rows has moved the same way, away from 0, four times in a row, and by half
        of the advantages' spread in all.
    Why it matters: the baseline falls further and further behind the returns: the value function is not learning, or the
        returns change too fast for it.
    When it misfires: the first fifty rows, in which the value function finds its level, do not count; neither do
        whitened advantages and those without baseline.
    What to do: raise the value function's learning rate or its number of epochs, loosen its clipping range, and look at the
        explained variance. Whiten the advantages.
    References: Schulman et al. 2016, High-Dimensional Continuous Control Using Generalized Advantage Estimation.
    """

    __slots__ = ("_drift", "moved", "spreads")
    type: ClassVar[str] = "advantage_trend_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_mean",), ("advantage_std",))
    panels: ClassVar = ("advantages", "advantage_std")
    watches: ClassVar = ("advantage_mean",)
    reads: ClassVar = KIND
    advice: ClassVar[str] = (
        "Raise the value function's learning rate or epochs, loosen its clipping range, or whiten the advantages."
    )
    clear: ClassVar[int] = 1
    clauses: ClassVar = {
        "drifts": Clause(
            "the mean advantage drifts away from 0 in one direction", "warning",
            "four changes in one direction are not chance; half a spread is a judgement",
        ),
    }  # fmt: skip
    settings: ClassVar = {"spreads": Setting(0.5, "distance that the mean must have moved, in standard deviations", min=0.0)}
    spreads: float
    moved: float
    _drift: BlockDrift

    def reset(self) -> None:
        super().reset()
        self._drift = BlockDrift()
        self.moved = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        drift = self._drift
        if drift.add(view.get("advantage_mean").level):
            self.moved = self._moved(view)
        if not self.moved:
            return ()
        message = f"The mean advantage went from {drift.before:.3g} to {drift.after:.3g} in {BLOCK * 4} rows, in one direction."
        evidence = {"mean": drift.after, "mean_before": drift.before, "spreads": self.moved}
        return (Finding("warning", self.moved, self.spreads, message, evidence),)

    def _moved(self, view: View) -> float:
        """How many spreads the mean has moved away from 0, block by block; 0 if it has not."""
        drift, std = self._drift, view.get("advantage_std").level
        change = abs(drift.change())
        far = std > 0.0 and change > self.spreads * std and abs(drift.after) > abs(drift.before)
        return change / std if far and judges_mean(view) else 0.0
