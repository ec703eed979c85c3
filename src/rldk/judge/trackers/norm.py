"""One positive quantity on a scale of factors: a gradient norm, or the ratio of two."""

from __future__ import annotations

from math import inf, log, nan, sqrt

from rldk.core.stats.base import Statistic, check_window
from rldk.core.stats.slope import RollingSlope
from rldk.judge.scores.formulas import clip
from rldk.signals.series import EARLY

__all__ = ["DECADE", "Norm"]

DECADE = log(10.0)
FACTOR_OF_TWO = log(2.0)
MARGIN, USUAL = 3.0, 1.5  # early spreads that a level may be off, and that noise may have
NEW = 0.2  # weight of the latest value in the level: about the last five count
QUIET, DEAD = 5, 20  # consecutive zeros that are normal, and that mean no gradient at all


class Norm(Statistic):
    """A norm's last value, its level, where it started, and its trend, all but the first as logarithms.

    The level is an exponentially weighted mean, the base the mean of the first 20 values. Their spread tells how far from
    the base is still normal for this run (`margin`, a factor of 10 at least), and how much noise (`usual`, a factor of 2 at
    least). Zeros have no logarithm: they are counted while they follow one another, since many healthy runs log one in
    every other row.
    """

    __slots__ = ("_m2", "_n", "base", "last", "level", "margin", "trend", "usual", "window", "zeros")
    parameters = ("window",)
    window: int
    last: float
    level: float
    base: float
    margin: float
    usual: float
    zeros: int
    trend: RollingSlope
    _m2: float
    _n: int

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, minimum=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.last = self.level = self.base = nan
        self.margin, self.usual = DECADE, FACTOR_OF_TWO
        self._m2 = 0.0
        self.zeros = self._n = 0
        self.trend = RollingSlope(self.window)

    def update(self, value: float) -> None:
        """Take the next value. A NaN means that none was logged."""
        if value != value:
            return
        self.last = value
        if not 0.0 < value < inf:
            self.zeros += value == 0.0
            return
        self.zeros = 0
        size = log(value)
        self._n = n = self._n + 1
        if n == 1:
            self.level = self.base = size
        else:
            self.level += NEW * (size - self.level)
            if n <= EARLY:
                self._learn(size, n)
        self.trend.update(size)

    def _learn(self, size: float, n: int) -> None:
        """Take one of the first values into the base and its spread."""
        away = size - self.base
        self.base += away / n
        self._m2 += away * (size - self.base)
        spread = sqrt(self._m2 / (n - 1))
        self.margin, self.usual = max(DECADE, MARGIN * spread), max(FACTOR_OF_TWO, USUAL * spread)

    def strain(self) -> tuple[float, float]:
        """By how many decades the level is above, and below, what is healthy; negative inside.

        Healthy is 0.1 to 10, and what is within the margin of the base. Beyond it by any measure is a norm that is
        infinite, or negative.
        """
        last, level = self.last, self.level
        if last == inf or last < 0.0:
            return inf, -inf
        high, low = self.base + self.margin, self.base - self.margin
        return (level - (high if high > DECADE else DECADE)) / DECADE, ((low if low < -DECADE else -DECADE) - level) / DECADE

    def dead(self) -> float:
        """0 up to 5 zeros in a row, 1 from 20 on."""
        return clip((self.zeros - QUIET) / (DEAD - QUIET)) if self.zeros else 0.0

    def away(self) -> float:
        """How many decades the level is from 1, or from its base if that is nearer."""
        return min(abs(self.level), abs(self.level - self.base)) / DECADE
