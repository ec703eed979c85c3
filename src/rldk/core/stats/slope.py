"""Mean, spread and slope of the latest values of a series: is it rising or falling, and by more than noise?"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import copysign, fsum, inf, nan, sqrt
from operator import mul
from sys import float_info
from typing import Any

from rldk.core.stats.base import ScalarStatistic, check_window

__all__ = ["Line", "RollingSlope", "exact_mean", "least_squares"]

MAX = float_info.max
LOST = 0.01  # share of its peak below which a sum of squares has lost too many digits

Line = tuple[float, float, float, float, float]
"""Mean, spread, slope, t, rise."""


class RollingSlope(ScalarStatistic):
    """Mean, variance and least-squares line of the last `window` values, in an O(1) update that does not drift.

    The line is against the position of the values; skipped values take no position.

    Welford's update while the window fills; then the new value replaces the oldest one in the mean and the sums. Taking a
    value out leaves its rounding error behind: after one spike of 1e8, the variance of values near 1 would be noise. So all
    are computed from the values again once per `window` values, which is O(1) amortised, and at once when the sum of squares
    has fallen below a hundredth of its peak (a spike has left the window) or is not finite.

    Values wait until something is read, or until there are `window` of them: updates whose result nobody reads before the next
    recomputation are never made. That takes a tenth off a scan, where the lines of the trackers are read once at the end.
    """

    __slots__ = ("_due", "_m2", "_mean", "_peak", "_ring", "_sxy", "_waiting", "window")
    parameters = ("window",)
    window: int
    _ring: deque[float]
    _mean: float
    _m2: float
    _sxy: float
    _peak: float
    _due: int
    _waiting: list[float]

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, minimum=2)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._ring = deque(maxlen=self.window)
        self._mean = self._m2 = self._sxy = self._peak = 0.0
        self._due = self.window
        self._waiting = []

    def _add(self, value: float) -> None:
        self._waiting.append(value)
        if len(self._waiting) >= self.window:
            self._settle()

    def _settle(self) -> None:
        """Take the values that wait: the same to the last bit as one by one. What precedes the last recomputation is skipped."""
        values, self._waiting = self._waiting, []
        if len(values) >= self._due:
            self._ring.extend(values[: self._due])
            values = values[self._due :]
            self._compute()
            self._due = self.window
        for value in values:
            self._shift(value)

    def _shift(self, value: float) -> None:
        """Positions count from the oldest value, so that all of them shift by one."""
        ring = self._ring
        n = len(ring)
        before = self._mean
        if n < self.window:
            self._mean = mean = before + (value - before) / (n + 1)
            rest = value - mean
            m2 = self._m2 + (value - before) * rest
            self._sxy += 0.5 * (n + 1) * rest
        else:
            oldest = ring[0]
            change = value - oldest
            gone = oldest - before
            self._mean = mean = before + change / n
            m2 = self._m2 + change * (value - mean + gone)
            self._sxy += 0.5 * ((n + 1) * gone + (n - 1) * (value - before))
        ring.append(value)
        self._m2 = m2
        if m2 > self._peak:
            self._peak = m2
        self._due = due = self._due - 1
        if not due:
            self._due = self.window
        if not (due and LOST * self._peak <= m2 <= MAX):
            self._compute()

    def _compute(self) -> None:
        """Mean and sums from the values themselves."""
        values = list(self._ring)
        self._mean = mean = exact_mean(values)
        away = [value - mean for value in values]
        self._m2 = self._peak = sum(map(mul, away, away))
        middle = 0.5 * (len(values) - 1)
        self._sxy = sum([(position - middle) * distance for position, distance in enumerate(away)])

    @property
    def count(self) -> int:
        """Number of values in the window."""
        return min(self.window, len(self._ring) + len(self._waiting))

    @property
    def mean(self) -> float:
        """Arithmetic mean of the window."""
        self._settle()
        return self._mean if self._ring else nan

    @property
    def std(self) -> float:
        """Sample standard deviation of the window (divided by n - 1); NaN for fewer than two values."""
        self._settle()
        n = len(self._ring)
        return sqrt(self._m2 / (n - 1)) if n > 1 else nan

    def line(self) -> Line:
        """Mean, spread about the line, slope, its t value, and the rise of the line over the window.

        The slope is the change from one value to the next; NaN for fewer than two values. The spread is the standard
        deviation of the residuals (divided by n - 2). It and t are NaN for fewer than three values. t is 0 for a constant
        series and infinite for values exactly on a sloping line.
        """
        self._settle()
        n = len(self._ring)
        if n < 3:
            slope = self._sxy / (n * (n * n - 1) / 12.0) if n == 2 else nan
            return self.mean, nan, slope, nan, slope
        sxy = self._sxy
        sxx = n * (n * n - 1) / 12.0
        slope = sxy / sxx
        residual = (self._m2 - slope * sxy) / (n - 2)
        if residual > 0.0:
            spread = sqrt(residual)
            return self._mean, spread, slope, slope * sqrt(sxx) / spread, slope * (n - 1)
        if residual != residual:  # the sums have overflowed
            return self._mean, nan, slope, nan, slope * (n - 1)
        return self._mean, 0.0, slope, copysign(inf, slope) if slope else 0.0, slope * (n - 1)

    def state_dict(self) -> dict[str, Any]:
        self._settle()
        return super().state_dict()


def least_squares(n: int, sxx: float, sxy: float, syy: float) -> tuple[float, float]:
    """Slope of a straight line through `n` points and its t value, from their centred sums; as in `RollingSlope.line`."""
    if n < 2 or not sxx > 0.0:
        return nan, nan
    slope = sxy / sxx
    if n < 3:
        return slope, nan
    residual = syy - slope * sxy
    stderr = 0.0 if residual < 0.0 else sqrt(residual / (n - 2) / sxx)
    if stderr != 0.0:
        return slope, slope / stderr
    return slope, copysign(inf, slope) if slope else 0.0


def exact_mean(values: Sequence[float]) -> float:
    """Mean of finite values, never beyond the smallest and the largest: the mean of a constant series is the constant."""
    try:
        mean = fsum(values) / len(values)
    except OverflowError:
        mean = fsum([value * 2.0**-60 for value in values]) / len(values) * 2.0**60
    return min(max(mean, min(values)), max(values))
