"""Order statistics of the latest values."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from math import floor, isfinite, nan

from rldk.core.errors import UsageError
from rldk.core.stats.base import ScalarStatistic, check_window

__all__ = ["RollingQuantiles", "quantile_of_sorted"]

NORMAL_MAD = 1.4826  # the standard deviation of a normal distribution, in median absolute deviations


class RollingQuantiles(ScalarStatistic):
    """Quantiles and median absolute deviation of the last `window` values, exact.

    A ring of the values as they came, and a sorted list of the same ones. An update is two binary searches and two
    shifts of memory, which for windows of a few thousand cost less than the searches. To be read as often as one likes:
    nothing is sorted for it.
    """

    __slots__ = ("_ring", "_sorted", "window")
    parameters = ("window",)
    window: int
    _ring: deque[float]
    _sorted: list[float]

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, least=1)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._ring = deque(maxlen=self.window)
        self._sorted = []

    def _add(self, value: float) -> None:
        ring, values = self._ring, self._sorted
        if len(ring) == self.window:
            del values[bisect_left(values, ring[0])]
        ring.append(value)
        insort(values, value)

    @property
    def count(self) -> int:
        """Number of values in the window."""
        return len(self._sorted)

    @property
    def values(self) -> list[float]:
        """The values of the window, the oldest first."""
        return list(self._ring)

    @property
    def min(self) -> float:
        """Smallest value of the window."""
        return self._sorted[0] if self._sorted else nan

    @property
    def max(self) -> float:
        """Largest value of the window."""
        return self._sorted[-1] if self._sorted else nan

    @property
    def median(self) -> float:
        """Middle value, or the mean of the two in the middle."""
        values = self._sorted
        n = len(values)
        if not n:
            return nan
        half = n >> 1
        return values[half] if n & 1 else _middle(values[half - 1], values[half])

    def quantile(self, q: float) -> float:
        """The value below which a share `q` lies, interpolated as numpy's method `linear` does."""
        return quantile_of_sorted(self._sorted, q)

    @property
    def mad(self) -> float:
        """Median absolute deviation from the median."""
        return self._mad(self.median)

    def location_scale(self) -> tuple[float, float]:
        """Median, and 1.4826 · MAD: the robust counterparts of mean and standard deviation."""
        median = self.median
        return median, NORMAL_MAD * self._mad(median)

    def _mad(self, median: float) -> float:
        """The k + 1 values nearest to the median are neighbours in the sorted window: bisection finds where they start.

        The farther end of that stretch is the deviation of rank k; the farther end of what is left is that of k - 1.
        """
        values = self._sorted
        n = len(values)
        if not n:
            return nan
        k = n >> 1
        low, high = 0, n - 1 - k
        while low < high:
            start = (low + high) >> 1
            if median - values[start] > values[start + k + 1] - median:
                low = start + 1
            else:
                high = start
        near, far = median - values[low], values[low + k] - median
        if near > far:
            near, far = far, near
            inner = median - values[low + 1]
        else:
            inner = values[low + k - 1] - median
        return far if n & 1 else _middle(inner if inner > near else near, far)


def quantile_of_sorted(values: list[float], q: float) -> float:
    """Quantile of values in ascending order, interpolated linearly between the two nearest; NaN where there is none."""
    if not 0.0 <= q <= 1.0:
        raise UsageError(f"Expected `q` to be between 0 and 1, got {q!r}.")
    if not values:
        return nan
    place = q * (len(values) - 1)
    index = floor(place)
    if index + 1 >= len(values):
        return values[-1]
    low, high, share = values[index], values[index + 1], place - index
    gap = high - low
    if not isfinite(gap):
        return low * (1.0 - share) + high * share
    return low + gap * share if share < 0.5 else high - gap * (1.0 - share)


def _middle(low: float, high: float) -> float:
    middle = (low + high) * 0.5
    return middle if middle - middle == 0.0 else low * 0.5 + high * 0.5  # finite, or else halved first
