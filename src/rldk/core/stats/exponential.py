"""Moments that forget: the older a value, the less it counts."""

from __future__ import annotations

from math import exp, log, nan, sqrt
from sys import float_info

from rldk.core.stats.base import ScalarStatistic, check_number

__all__ = ["EwMoments"]

MAX = float_info.max


class EwMoments(ScalarStatistic):
    """Exponentially weighted mean and variance: a value counts half as much after `halflife` further ones.

    The weights are normalised by their sum, so that the first values are not drawn towards zero: the results are those
    of pandas' `ewm(halflife=halflife, adjust=True, ignore_na=True)`, `.mean()` and `.var(bias=True)`. West's recursion
    for the weighted variance. A variance that would overflow stays at the largest float, and decays from there.
    """

    __slots__ = ("_decay", "_mean", "_square", "_weight", "count", "halflife")
    parameters = ("halflife",)
    halflife: float
    count: int
    _decay: float
    _weight: float
    _mean: float
    _square: float

    def __init__(self, halflife: float) -> None:
        self.halflife = check_number("halflife", halflife, above=0.0)
        self._decay = exp(-log(2.0) / self.halflife)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self._weight = self._mean = self._square = 0.0

    def _add(self, value: float) -> None:
        self.count += 1
        old = self._decay * self._weight
        self._weight = weight = old + 1.0
        mean = self._mean
        if value == mean:  # a constant series has no variance, not even a rounding error's
            self._square *= self._decay
            return
        delta = value - mean
        kept = old / weight
        self._mean = mean * kept + value / weight
        square = self._decay * self._square + kept * delta * delta
        self._square = square if square <= MAX else MAX

    @property
    def weight(self) -> float:
        """Sum of the weights, in values: grows from 1 towards about 1.44 · `halflife`."""
        return self._weight

    @property
    def mean(self) -> float:
        """Weighted mean."""
        return self._mean if self.count else nan

    @property
    def variance(self) -> float:
        """Weighted population variance: 0 for a single value."""
        return self._square / self._weight if self.count else nan

    @property
    def std(self) -> float:
        """Square root of the variance."""
        return sqrt(self.variance)
