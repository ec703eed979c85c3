"""Moments of everything seen so far."""

from __future__ import annotations

from math import nan, sqrt
from sys import float_info

from rldk.core.stats.base import ScalarStatistic

__all__ = ["RunningMoments"]

MAX = float_info.max


class RunningMoments(ScalarStatistic):
    """Mean, variance, skewness, kurtosis and extremes of all values seen, by Welford's and Pébay's one-pass updates.

    No sum of squares is kept, so nothing cancels for values such as 1e8 plus noise. Values so large that a power of
    their distance from the mean overflows (about 1e154 for the variance, 1e77 for the kurtosis) give an infinite
    variance and an unknown (NaN) skewness and kurtosis; the mean and the extremes stay right.

    P. Pébay, *Formulas for robust, one-pass parallel computation of covariances and arbitrary-order statistical
    moments*, Sandia report SAND2008-6212, 2008.
    """

    __slots__ = ("_m2", "_m3", "_m4", "_max", "_mean", "_min", "count")
    count: int
    _mean: float
    _m2: float
    _m3: float
    _m4: float
    _min: float
    _max: float

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self._mean = self._m2 = self._m3 = self._m4 = 0.0
        self._min = self._max = nan

    def _add(self, value: float) -> None:
        before = self.count
        self.count = n = before + 1
        mean = self._mean
        delta = value - mean
        share = delta / n
        if not -MAX <= share <= MAX:
            share = value / n - mean / n  # 1e308 after -1e308
        square = share * share
        gain = share * before * delta  # in this order, 0 for the first value however large
        m2 = self._m2
        m3 = self._m3
        self._mean = mean + share
        self._m4 += gain * square * (n * n - 3 * n + 3) + 6.0 * square * m2 - 4.0 * share * m3
        self._m3 = m3 + gain * share * (n - 2) - 3.0 * share * m2
        self._m2 = m2 + gain
        if not value >= self._min:  # true of the first value too, where the minimum is NaN
            self._min = value
        if not value <= self._max:
            self._max = value

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

    @property
    def skewness(self) -> float:
        """Fisher's g1, m3 / m2^1.5 of the population moments; NaN where all values are the same."""
        m2 = self._m2 / self.count if self.count else 0.0
        divisor = m2 * sqrt(m2)
        return self._m3 / self.count / divisor if divisor > 0.0 else nan

    @property
    def kurtosis(self) -> float:
        """Fisher's excess kurtosis g2, m4 / m2² - 3 of the population moments: 0 for a normal distribution."""
        m2 = self._m2 / self.count if self.count else 0.0
        divisor = m2 * m2
        return self._m4 / self.count / divisor - 3.0 if divisor > 0.0 else nan

    @property
    def min(self) -> float:
        """Smallest value."""
        return self._min

    @property
    def max(self) -> float:
        """Largest value."""
        return self._max
