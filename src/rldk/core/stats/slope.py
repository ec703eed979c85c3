"""Is it rising or falling, and is that more than noise?"""

from __future__ import annotations

from math import copysign, inf, nan, sqrt

from rldk.core.stats.rolling import LOST, MAX, RollingMoments

__all__ = ["Line", "RollingSlope", "least_squares"]

Line = tuple[float, float, float, float, float]
"""Mean, spread, slope, t, rise."""


class RollingSlope(RollingMoments):
    """Least-squares slope of the last `window` values against their position, with its standard error and t value.

    The slope is per value; values that are left out take no position. For one per training step, where steps are
    missing, use `RollingRegression`. The mean and variance of the window come with it, and its sum of products is kept
    and computed again together with theirs.
    """

    __slots__ = ("_sxy",)
    _sxy: float

    def reset(self) -> None:
        super().reset()
        self._sxy = 0.0

    def _add(self, value: float) -> None:
        """As in `RollingMoments`; positions count from the oldest value, so that all of them shift by one."""
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
        super()._compute()
        mean = self._mean
        middle = 0.5 * (len(self._ring) - 1)
        self._sxy = sum([(position - middle) * (value - mean) for position, value in enumerate(self._ring)])

    def fit(self) -> tuple[float, float, float]:
        """Slope, standard error and t value, for the price of one."""
        n = len(self._ring)
        return least_squares(n, n * (n * n - 1) / 12.0, self._sxy, self._m2)

    def line(self) -> Line:
        """Mean, spread about the line, slope, its t value, and the rise of the line over the window.

        The spread is the standard deviation of the residuals (divided by n - 2). It and t are NaN for fewer than three
        values, and t is infinite for values exactly on a sloping line. As `fit`, in one go.
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

    @property
    def slope(self) -> float:
        """Change from one value to the next; NaN for fewer than two values."""
        return self.fit()[0]

    @property
    def stderr(self) -> float:
        """Standard error of the slope; NaN for fewer than three values, 0 where they lie on a line."""
        return self.fit()[1]

    @property
    def t(self) -> float:
        """Slope in standard errors: 0 for a constant series, infinite for values exactly on a sloping line."""
        return self.fit()[2]


def least_squares(n: int, sxx: float, sxy: float, syy: float) -> tuple[float, float, float]:
    """Slope of a straight line through `n` points, its standard error and t value, from their centred sums."""
    if n < 2 or not sxx > 0.0:
        return nan, nan, nan
    slope = sxy / sxx
    if n < 3:
        return slope, nan, nan
    residual = syy - slope * sxy
    stderr = 0.0 if residual < 0.0 else sqrt(residual / (n - 2) / sxx)
    if stderr != 0.0:
        return slope, stderr, slope / stderr
    return slope, stderr, copysign(inf, slope) if slope else 0.0
