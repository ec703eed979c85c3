"""Two series together: their latest pairs, and what follows from these."""

from __future__ import annotations

from collections import deque
from math import dist, isfinite

from rldk.core.stats.base import Statistic, check_window
from rldk.core.stats.rolling import LOST, MAX, exact_mean
from rldk.core.stats.slope import least_squares

__all__ = ["PairWindow", "RollingRegression"]


class PairWindow(Statistic):
    """Centred sums over the last `window` pairs, kept and computed again as in `RollingMoments`.

    A pair of which one side is NaN is missing, and one of which one side is infinite is left out as well.
    """

    __slots__ = ("_due", "_mx", "_my", "_peak_x", "_peak_y", "_sxx", "_sxy", "_syy", "_xs", "_ys", "window")
    parameters = ("window",)
    window: int
    _xs: deque[float]
    _ys: deque[float]
    _mx: float
    _my: float
    _sxx: float
    _sxy: float
    _syy: float
    _peak_x: float
    _peak_y: float
    _due: int

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, least=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._xs = deque(maxlen=self.window)
        self._ys = deque(maxlen=self.window)
        self._mx = self._my = self._sxx = self._sxy = self._syy = self._peak_x = self._peak_y = 0.0
        self._due = self.window

    def update(self, x: float, y: float) -> None:
        """Take the next pair into account."""
        x, y = float(x), float(y)
        if isfinite(x) and isfinite(y):
            self._add(x, y)
        elif x != x or y != y:
            self.missing += 1
        else:
            self.nonfinite += 1

    def _add(self, x: float, y: float) -> None:
        n = len(self._xs)
        mx, my = self._mx, self._my
        dx, dy = x - mx, y - my
        if n < self.window:
            share = n / (n + 1)
            self._mx = mx + dx / (n + 1)
            self._my = my + dy / (n + 1)
            self._sxx = sxx = self._sxx + dx * dx * share
            self._syy = syy = self._syy + dy * dy * share
            self._sxy += dx * dy * share
        else:
            gone_x, gone_y = self._xs[0] - mx, self._ys[0] - my
            step_x, step_y = (dx - gone_x) / n, (dy - gone_y) / n
            self._mx = mx + step_x
            self._my = my + step_y
            self._sxx = sxx = self._sxx + n * step_x * (dx + gone_x - step_x)
            self._syy = syy = self._syy + n * step_y * (dy + gone_y - step_y)
            self._sxy += dx * dy - gone_x * gone_y - n * step_x * step_y
        self._xs.append(x)
        self._ys.append(y)
        if sxx > self._peak_x:
            self._peak_x = sxx
        if syy > self._peak_y:
            self._peak_y = syy
        self._due -= 1
        if not (self._due and LOST * self._peak_x <= sxx <= MAX and LOST * self._peak_y <= syy <= MAX):
            self._compute()

    def _compute(self) -> None:
        """Means and sums from the pairs themselves."""
        xs, ys = list(self._xs), list(self._ys)
        self._mx, self._my = mx, my = exact_mean(xs), exact_mean(ys)
        spread_x, spread_y = dist(xs, [mx] * len(xs)), dist(ys, [my] * len(ys))
        self._sxx = self._peak_x = spread_x * spread_x
        self._syy = self._peak_y = spread_y * spread_y
        self._sxy = sum([(x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)])
        self._due = self.window

    @property
    def count(self) -> int:
        """Number of pairs in the window."""
        return len(self._xs)


class RollingRegression(PairWindow):
    """Least-squares slope of y against x over the last `window` pairs, with its standard error and t value."""

    __slots__ = ()

    def fit(self) -> tuple[float, float, float]:
        """Slope, standard error and t value; where they are NaN, 0 or infinite is as in `RollingSlope`."""
        return least_squares(len(self._xs), self._sxx, self._sxy, self._syy)

    @property
    def slope(self) -> float:
        """Change of y per unit of x; NaN for fewer than two pairs, or where all x are the same."""
        return self.fit()[0]

    @property
    def stderr(self) -> float:
        """Standard error of the slope; NaN for fewer than three pairs."""
        return self.fit()[1]

    @property
    def t(self) -> float:
        """Slope in standard errors."""
        return self.fit()[2]
