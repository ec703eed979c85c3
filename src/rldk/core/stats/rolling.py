"""Moments of the latest values."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import fsum, nan, sqrt
from operator import mul
from sys import float_info

from rldk.core.stats.base import ScalarStatistic, check_window

__all__ = ["RollingMoments", "exact_mean"]

MAX = float_info.max
LOST = 0.01  # share of its peak below which a sum of squares has lost digits worth having


class RollingMoments(ScalarStatistic):
    """Mean and variance of the last `window` values: an O(1) update that neither drifts nor remembers what has left.

    Welford's update while the window fills; then the new value replaces the oldest one in the mean and in the sum of
    squares. Taking a value out leaves its rounding error behind: after one spike of 1e8, the variance of values near 1
    would be noise. So both are computed from the values again with every `window` values, which is O(1) amortised, and at
    once when the sum of squares has fallen below a hundredth of its peak, which takes a spike that leaves, or is not finite.
    """

    __slots__ = ("_due", "_m2", "_mean", "_peak", "_ring", "window")
    parameters = ("window",)
    window: int
    _ring: deque[float]
    _mean: float
    _m2: float
    _peak: float
    _due: int

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, least=2)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._ring = deque(maxlen=self.window)
        self._mean = self._m2 = self._peak = 0.0
        self._due = self.window

    def _add(self, value: float) -> None:
        ring = self._ring
        n = len(ring)
        before = self._mean
        if n < self.window:
            self._mean = mean = before + (value - before) / (n + 1)
            m2 = self._m2 + (value - before) * (value - mean)
        else:
            oldest = ring[0]
            change = value - oldest
            self._mean = mean = before + change / n
            m2 = self._m2 + change * (value - mean + (oldest - before))
        ring.append(value)
        self._m2 = m2
        if m2 > self._peak:
            self._peak = m2
        self._due = due = self._due - 1
        if not due:
            self._due = self.window
        if not (due and LOST * self._peak <= m2 <= MAX):
            self._compute()

    def extend(self, values: Sequence[float]) -> None:
        """Take many finite values: the results are those of one after the other, to the last bit, for less.

        What was before the last time at which all is computed again does not count.
        """
        due, window = self._due, self.window
        if len(values) >= due:
            ahead = due + (len(values) - due) // window * window
            self._ring.extend(values[:ahead])
            self._compute()
            self._due = window
            values = values[ahead:]
        for value in values:
            self._add(value)

    def _compute(self) -> None:
        """Mean and sum of squares from the values themselves."""
        values = list(self._ring)
        self._mean = mean = exact_mean(values)
        away = [value - mean for value in values]
        self._m2 = self._peak = sum(map(mul, away, away))

    @property
    def count(self) -> int:
        """Number of values in the window."""
        return len(self._ring)

    @property
    def mean(self) -> float:
        """Arithmetic mean of the window."""
        return self._mean if self._ring else nan

    @property
    def variance(self) -> float:
        """Sample variance of the window (divided by n - 1); NaN for fewer than two values."""
        n = len(self._ring)
        return self._m2 / (n - 1) if n > 1 else nan

    @property
    def std(self) -> float:
        """Square root of the sample variance."""
        return sqrt(self.variance)


def exact_mean(values: Sequence[float]) -> float:
    """Mean of finite values, never beyond the smallest and the largest: that of a constant series is the constant."""
    try:
        mean = fsum(values) / len(values)
    except OverflowError:
        mean = fsum([value * 2.0**-60 for value in values]) / len(values) * 2.0**60
    return min(max(mean, min(values)), max(values))
