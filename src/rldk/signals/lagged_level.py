"""The level a series had a while ago, read at two intervals, so that short logs are judged as well as long ones."""

from __future__ import annotations

from rldk.core.stats.base import Statistic

__all__ = ["QUICK", "SLOW", "LaggedLevel"]

QUICK, SLOW = 6, 25
"""Rows between two readings, at the quick and at the slow interval."""
KEPT = 5


class LaggedLevel(Statistic):
    """Readings of a level, every six rows and every twenty-five, of which the last five are kept: `read` takes them.

    The two oldest readings give the level a while ago, and whether the series was at rest then: if it was, a fall or a rise
    started later. The quick interval covers a log of fifty rows as the slow one covers a log of two hundred.
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
        """Take the level after `count` rows. Rows between the readings may be skipped."""
        level = float(level)
        if count == self.count or level - level != 0.0:
            return  # already read, or nothing to read
        self.count = count
        if count % QUICK == 0:
            self.quick = [*self.quick[1 - KEPT :], level]
        if count % SLOW == 0:
            self.slow = [*self.slow[1 - KEPT :], level]
