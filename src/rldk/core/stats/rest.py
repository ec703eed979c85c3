"""Where a series had come to rest a while ago: at two paces, so that short logs are judged as well as long ones."""

from __future__ import annotations

from math import nan

from rldk.core.stats.base import ScalarStatistic

__all__ = ["Rest"]

QUICK, SLOW = 6, 25
KEPT = 5


class Rest(ScalarStatistic):
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

    def _add(self, value: float) -> None:
        count = self.count = self.count + 1
        if count == 1:
            self.mean = value
        elif value != self.mean:
            self.mean = (1.0 - self.weight) * self.mean + self.weight * value  # in this form it cannot overflow
        if count % QUICK == 0:
            self.quick = [*self.quick[1 - KEPT :], self.mean]
        if count % SLOW == 0:
            self.slow = [*self.slow[1 - KEPT :], self.mean]

    @property
    def read(self) -> bool:
        """Whether the last value gave a reading."""
        return self.count % QUICK == 0 or self.count % SLOW == 0

    def levels(self) -> list[tuple[float, float]]:
        """For each pace of which there are enough readings, the lower and the higher of the two oldest; the slow one first."""
        return [(min(kept[:2]), max(kept[:2])) for kept in (self.slow, self.quick) if len(kept) == KEPT]
