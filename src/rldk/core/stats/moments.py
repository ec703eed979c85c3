"""Mean, variance and extremes of everything seen so far."""

from __future__ import annotations

from math import nan, sqrt
from sys import float_info

from rldk.core.stats.base import ScalarStatistic

__all__ = ["RunningMoments"]

MAX = float_info.max


class RunningMoments(ScalarStatistic):
    """Mean, variance and extremes of all values seen, by Welford's one-pass update.

    No sum of squares is kept, so nothing cancels for values such as 1e8 plus noise. Values so large that the square of
    their distance from the mean overflows (about 1e154) give an infinite variance; the mean and the extremes stay right.
    """

    __slots__ = ("_m2", "_mean", "count", "max", "min")
    count: int
    min: float
    max: float
    _mean: float
    _m2: float

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self._mean = self._m2 = 0.0
        self.min = self.max = nan

    def _add(self, value: float) -> None:
        before = self.count
        self.count = n = before + 1
        delta = value - self._mean
        share = delta / n
        if not -MAX <= share <= MAX:
            share = value / n - self._mean / n  # 1e308 after -1e308
        self._mean += share
        self._m2 += share * before * delta  # in this order, 0 for the first value however large
        if not value >= self.min:  # true of the first value too, where the minimum is NaN
            self.min = value
        if not value <= self.max:
            self.max = value

    @property
    def mean(self) -> float:
        """Arithmetic mean."""
        return self._mean if self.count else nan

    @property
    def variance(self) -> float:
        """Sample variance (divided by n - 1); NaN for fewer than two values."""
        return self._m2 / (self.count - 1) if self.count > 1 else nan

    @property
    def std(self) -> float:
        """Square root of the sample variance."""
        return sqrt(self.variance)
