"""Where a series had come to rest a while ago: at two paces, so that short logs are judged as well as long ones."""

from __future__ import annotations

from math import nan

from rldk.core.stats.base import Statistic

__all__ = ["Rest"]

QUICK, SLOW = 6, 25
KEPT = 5


class Rest(Statistic):
    """Readings of a level, every six rows and every twenty-five, of which the last five are kept.

    The two oldest readings tell what the series was a while ago, and whether it was at rest then: a fall or a rise that
    the rest before it does not foretell is one that began since. A log of fifty rows has seen no more of the quick pace
    than one of two hundred has of the slow one.
    """

    __slots__ = ("count", "quick", "slow")
    count: int
    quick: list[float]
    slow: list[float]

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self.quick, self.slow = [], []

    def update(self, level: float) -> bool:
        """Take the level of another row into account; whether that gave a reading."""
        level = float(level)
        if level - level != 0.0:
            if level != level:
                self.missing += 1
            else:
                self.nonfinite += 1
            return False
        self.count = count = self.count + 1
        if count % QUICK and count % SLOW:
            return False
        if count % QUICK == 0:
            self.quick = [*self.quick[1 - KEPT :], level]
        if count % SLOW == 0:
            self.slow = [*self.slow[1 - KEPT :], level]
        return True

    def levels(self) -> list[tuple[float, float]]:
        """For each pace of which there are enough readings, the lower and the higher of the two oldest; the slow one first."""
        return [(min(kept[:2]), max(kept[:2])) for kept in (self.slow, self.quick) if len(kept) == KEPT]

    def before(self) -> float:
        """The lower level a hundred values back, or in a shorter series thirty; `nan` where that is before its start."""
        return next((low for low, _ in self.levels()), nan)
