"""What trackers ask of a series: where it is, how noisy, and where it is going; and how often something was so."""

from __future__ import annotations

from collections import deque
from math import copysign, inf, nan, sqrt

from rldk.core.stats.base import Statistic, check_window
from rldk.core.stats.slope import RollingSlope

__all__ = ["Line", "RollingShare", "Trend"]

Line = tuple[float, float, float, float, float]
"""Mean, spread, slope, t, rise."""


class Trend(RollingSlope):
    """The last `window` values and the straight line through them, all of it read at once."""

    __slots__ = ()

    add = RollingSlope._add
    """Take a value that is known to be finite: what `update` costs beside it is a fifth."""

    def line(self) -> Line:
        """Mean, spread about the line, slope, its t value, and the rise of the line over the window.

        The spread is the standard deviation of the residuals (divided by n - 2). It and t are NaN for fewer than three
        values, and t is infinite for values exactly on a sloping line. As `RollingSlope.fit`, in one go.
        """
        n = len(self._ring)
        if n < 3:
            return (self._mean if n else nan, nan, self.slope, nan, self.slope)
        sxy = self._sxy
        sxx = n * (n * n - 1) / 12.0
        slope = sxy / sxx
        residual = (self._m2 - slope * sxy) / (n - 2)
        if residual > 0.0:
            spread = sqrt(residual)
            return self._mean, spread, slope, slope * sqrt(sxx) / spread, slope * (n - 1)
        spread = nan if residual != residual else 0.0
        return self._mean, spread, slope, copysign(inf, slope) if slope else 0.0, slope * (n - 1)


class RollingShare(Statistic):
    """Share of the last `window` times in which something was so."""

    __slots__ = ("_ring", "_true", "window")
    parameters = ("window",)
    window: int
    _ring: deque[bool]
    _true: int

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, least=1)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._ring = deque(maxlen=self.window)
        self._true = 0

    def update(self, condition: bool) -> None:
        """Take into account whether it is so now."""
        ring = self._ring
        if len(ring) == self.window and ring[0]:
            self._true -= 1
        ring.append(condition)
        if condition:
            self._true += 1

    @property
    def count(self) -> int:
        """How many times are in the window."""
        return len(self._ring)

    @property
    def share(self) -> float:
        """The share; NaN while nothing was seen."""
        return self._true / len(self._ring) if self._ring else nan
