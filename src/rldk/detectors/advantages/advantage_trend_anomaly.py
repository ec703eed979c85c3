"""The mean advantage drifts away from zero."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import ClassVar

from rldk.detectors.advantages.kind import KIND, judges_mean
from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["AdvantageTrend"]

BLOCK = 25
BLOCKS = 5
EARLY = 2


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

    __slots__ = ("blocks", "count", "moved", "seen", "spreads", "total")
    type: ClassVar[str] = "advantage_trend_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_mean",), ("advantage_std",))
    panels: ClassVar = ("advantages", "advantage_std")
    watches: ClassVar = ("advantage_mean",)
    reads: ClassVar = KIND
    advice: ClassVar[str] = (
        "Raise the value function's learning rate or epochs, loosen its clipping range, or whiten the advantages."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 1
    clauses: ClassVar = {
        "drifts": Clause(
            "the mean advantage drifts away from 0 in one direction", "warning",
            "four changes in one direction are not chance; half a spread is a judgement",
        ),
    }  # fmt: skip
    settings: ClassVar = {"spreads": Setting(0.5, "distance that the mean must have moved, in standard deviations", min=0.0)}
    spreads: float
    blocks: deque[float]
    count: int
    seen: int
    total: float
    moved: float

    def reset(self) -> None:
        super().reset()
        self.blocks = deque(maxlen=BLOCKS)
        self.count = self.seen = 0
        self.total = self.moved = 0.0

    def check(self, view: View) -> Finding | None:
        self.total += view.get("advantage_mean").level / BLOCK
        self.count += 1
        if self.count >= BLOCK:
            self._close(view)
        if not self.moved:
            return None
        before, after = self.blocks[0], self.blocks[-1]
        message = f"The mean advantage went from {before:.3g} to {after:.3g} in {BLOCK * 4} rows, in one direction."
        return Finding(
            "warning", self.moved, self.spreads, message, {"mean": after, "mean_before": before, "spreads": self.moved}
        )

    def _close(self, view: View) -> None:
        """End a block and check whether the last ones all moved the same way."""
        self.seen += 1
        if self.seen > EARLY and self.total - self.total == 0.0:
            self.blocks.append(self.total)
        self.total, self.count, self.moved = 0.0, 0, 0.0
        blocks, std = list(self.blocks), view.get("advantage_std").level
        if len(blocks) < BLOCKS or not std > 0.0:
            return
        away = blocks[-1] - blocks[0]
        steps = [after - before for before, after in pairwise(blocks)]
        steady = all(step > 0.1 * away for step in steps) if away > 0.0 else all(step < 0.1 * away for step in steps)
        far = abs(away) > self.spreads * std and abs(blocks[-1]) > abs(blocks[0])
        if steady and far and judges_mean(view):
            self.moved = abs(away) / std
