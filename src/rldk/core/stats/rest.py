"""Where a series had come to rest a while ago: at two paces, so that short logs are judged as well as long ones."""

from __future__ import annotations

from math import nan

from rldk.core.stats.base import Statistic

__all__ = ["Rest"]

QUICK, SLOW = 6, 25
KEPT = 5


class Rest(Statistic):
    """Readings of a smoothed series, every six values and every twenty-five, of which the last five are kept.

    The two oldest readings tell what the series was a while ago, and whether it was at rest then: a fall or a rise that
    the rest before it does not foretell is one that began since. A log of fifty rows has seen no more of the quick pace
    than one of two hundred has of the slow one.
    """

    __slots__ = ("count", "mean", "quick", "slow", "weight")
    parameters = ("weight",)
    weight: float
    count: int
    mean: float
    quick: list[float]
    slow: list[float]

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight  # of the newest value in the smoothed one
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self.mean = nan
        self.quick, self.slow = [], []

    def update(self, value: float) -> bool:
        """Take the next value of the series into account; whether that gave a reading."""
        value = float(value)
        if value - value != 0.0:
            if value != value:
                self.missing += 1
            else:
                self.nonfinite += 1
            return False
        self.count = count = self.count + 1
        if count == 1:
            self.mean = value
        elif value != self.mean:
            self.mean = (1.0 - self.weight) * self.mean + self.weight * value  # in this form it cannot overflow
        if count % QUICK and count % SLOW:
            return False
        if count % QUICK == 0:
            self.quick = [*self.quick[1 - KEPT :], self.mean]
        if count % SLOW == 0:
            self.slow = [*self.slow[1 - KEPT :], self.mean]
        return True

    def levels(self) -> list[tuple[float, float]]:
        """For each pace of which there are enough readings, the lower and the higher of the two oldest; the slow one first."""
        return [(min(kept[:2]), max(kept[:2])) for kept in (self.slow, self.quick) if len(kept) == KEPT]

    def before(self) -> float:
        """The lower level a hundred values back, or in a shorter series thirty; `nan` where that is before its start."""
        return next((low for low, _ in self.levels()), nan)
