"""Where a series had come to rest a while ago: at two paces, so that short logs are judged as well as long ones."""

from __future__ import annotations

from math import nan

from rldk.core.stats.base import Statistic

__all__ = ["QUICK", "SLOW", "LaggedLevel"]

QUICK, SLOW = 6, 25
"""After how many rows there is a reading, at the one pace and at the other."""
KEPT = 5


class LaggedLevel(Statistic):
    """Readings of a level, every six rows and every twenty-five, of which the last five are kept: `read` takes them.

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

    def read(self, count: int, level: float) -> None:
        """Take the level after `count` rows. Rows between the readings need not be told."""
        level = float(level)
        if count == self.count or level - level != 0.0:
            return  # this one was read, or there is nothing to read
        self.count = count
        if count % QUICK == 0:
            self.quick = [*self.quick[1 - KEPT :], level]
        if count % SLOW == 0:
            self.slow = [*self.slow[1 - KEPT :], level]

    def levels(self) -> list[tuple[float, float]]:
        """For each pace of which there are enough readings, the lower and the higher of the two oldest; the slow one first."""
        return [(min(kept[:2]), max(kept[:2])) for kept in (self.slow, self.quick) if len(kept) == KEPT]

    def before(self) -> float:
        """The lower level a hundred values back, or in a shorter series thirty; `nan` where that is before its start."""
        return next((low for low, _ in self.levels()), nan)
