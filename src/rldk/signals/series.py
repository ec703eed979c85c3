"""One metric over a run, as all detectors see it: where it started, where it is now, and how far it has been."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf, isfinite, nan
from typing import Any

from rldk.core.stats.base import NOISE_PER_STEP, Statistic

__all__ = ["EARLY", "EMPTY", "RECENT", "Series", "SeriesByName", "update_all"]

RECENT = 5
EARLY = 20
ALIKE = 1e-6  # relative difference up to which two values count as the same number


class Series(Statistic):
    """One metric as all detectors see it. All counts are of logged values, not of the events in between.

    - `level` is the median of the last 5 values: one spike does not move it, three rows do. From the fifth value on the
      series is `ready`: it has a level and a start.
    - `start` is the median of the first 5 values, and `base` and `scale` are median and robust spread of the first 20
      (of as many as there are, from 5 on): the run's own normal.
    - `high` and `low` are the highest and lowest `level` so far, and `high_index` is the event at which the highest was reached.
    - `roughness` is the exponentially weighted mean size of the step from one value to the next, and `slow` the mean over
      about twenty rows.
    - `same` counts how many values in a row, up to the last, were the same number (to six digits), and `repeats` all values
      that were the same as the one before. `sameness` is the chance of as many equal
      values in a row, given how often values repeated before.
    - `noise` is the standard deviation of a row about the trend, from the roughness.
    """

    __slots__ = (
        "_early", "_ring", "base", "first", "high", "high_index", "index", "last", "level", "low", "n",
        "nonfinite_run", "previous", "ready", "repeats", "roughness", "same", "scale", "slow", "start",
    )  # fmt: skip
    n: int
    ready: bool
    last: float
    previous: float
    first: float
    index: int
    level: float
    start: float
    base: float
    scale: float
    high: float
    high_index: int
    low: float
    roughness: float
    slow: float
    nonfinite_run: int
    same: int
    repeats: int
    _ring: deque[float]
    _early: list[float]

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.n = self.nonfinite_run = self.same = self.repeats = 0
        self.ready = False
        self.index = self.high_index = -1
        self.last = self.previous = self.first = self.level = self.start = self.base = self.scale = nan
        self.roughness = self.slow = nan
        self.high, self.low = -inf, inf
        self._ring = deque(maxlen=RECENT)
        self._early = []

    def update(self, value: float, index: int) -> None:
        """Take the value that event number `index` logged."""
        update_all(((0, self),), (value,), index)

    def _begin(self, value: float, index: int) -> None:
        """Take one of the first values, which form the baseline."""
        n = self.n
        if n >= RECENT and self._early.count(value) == n:  # the same as ever, as every setting that is logged with the metrics
            self.n = n + 1
            self.same += 1
            self.repeats += 1
            self.last = self.previous = value
            self._ring.append(value)
            self._early.append(value)
            return
        self.n = n = n + 1
        before = self.previous
        self.last = self.previous = value
        self._ring.append(value)
        self._early.append(value)
        if n == 1:
            self.first = self.slow = value
            self.same = 1
        else:
            step = abs(value - before)
            if step <= ALIKE * abs(value):
                self.same += 1
                self.repeats += 1
            else:
                self.same = 1
            self.roughness = step if n == 2 else self.roughness + 0.1 * (step - self.roughness)
            self.slow += 0.05 * (value - self.slow)
        ordered = sorted(self._ring)
        level = ordered[len(ordered) >> 1]
        if n < RECENT:
            self.level = level
        else:
            self.ready = True
            self._settle(n)
            self.level = level
            self._set_extreme(level, index)

    def _set_extreme(self, level: float, index: int) -> None:
        if level > self.high:
            self.high, self.high_index = level, index
        if level < self.low:
            self.low = level

    def _settle(self, n: int) -> None:
        early = sorted(self._early)
        middle = early[n >> 1] if n & 1 else 0.5 * (early[(n >> 1) - 1] + early[n >> 1])
        if n == RECENT:
            self.start = middle
        spread = sorted([abs(value - middle) for value in early])[n >> 1]
        if spread == 0.0 or (n == EARLY and 3 * early.count(middle) >= n):  # many rows are equal: the others still have a spread
            spread = sum(abs(value - middle) for value in early) / n / 1.18
        self.base, self.scale = middle, 1.4826 * spread

    @property
    def early(self) -> list[float]:
        """The first twenty values, in their order: all of them while there are no more."""
        return self._early

    @property
    def noise(self) -> float:
        """Standard deviation of a row about the trend, from the mean change between neighbours."""
        return NOISE_PER_STEP * self.roughness

    @property
    def receded(self) -> bool:
        """Whether the last value is far below the level: a spike of a few rows is over, which the median still shows."""
        return self.last < 0.25 * self.level

    def stays_within(self, limit: float) -> bool:
        """Whether the last value, the first one and all levels in between are no further from 0 than `limit`."""
        if not abs(self.last) <= limit:
            return False
        high, low = (self.high, self.low) if self.ready else (self.level, self.level)
        return max(abs(self.first), abs(high), abs(low)) <= limit

    @property
    def later(self) -> float:
        """The slow mean without the weight that the first value still has in it: of few rows that is most of it."""
        first = 0.95 ** (self.n - 1) if self.n > 1 else 0.0
        return (self.slow - first * self.first) / (1.0 - first)

    @property
    def sameness(self) -> float:
        """The chance of as many equal values in a row, if values repeat as often as they did before; 1 for a series of one."""
        before = self.n - self.same
        if before < 1:
            return 1.0
        usual = (self.repeats - (self.same - 1) + 0.5) / (before + 1.0)  # Jeffreys' estimate: never 0, never 1
        return float(min(max(usual, 0.05), 0.999) ** (self.same - 1))

    def values(self) -> list[float]:
        """The last values, at most 5, the oldest first."""
        return list(self._ring)


def update_all(followed: Iterable[tuple[Any, Series]], values: Any, index: int) -> None:
    """Take what event number `index` logged: of each series the value under its key.

    All in one call, since a call per series would take a third of the time.
    """
    for key, series in followed:
        value = values[key]
        series.index = index
        if not isfinite(value):
            series.nonfinite += 1
            series.nonfinite_run += 1
            series.last = value
            continue
        if series.nonfinite_run:
            series.nonfinite_run = 0
        n = series.n
        if n < EARLY:
            series._begin(value, index)
            continue
        series.n = n + 1
        roughness, slow, step = series.roughness, series.slow, value - series.previous
        if step < 0.0:
            step = -step
        if step <= ALIKE * (value if value > 0.0 else -value):
            series.same += 1
            series.repeats += 1
        else:
            series.same = 1
        series.roughness = roughness + 0.1 * (step - roughness)
        series.slow = slow + 0.05 * (value - slow)
        series.last = series.previous = value
        ring, level = series._ring, series.level
        oldest = ring[0]
        ring.append(value)
        if oldest < level > value or oldest > level < value or oldest == value:
            continue  # one left and one arrived on the same side of the median: no change
        series.level = level = sorted(ring)[RECENT >> 1]
        if level > series.high or level < series.low:
            series._set_extreme(level, index)


class SeriesByName(dict[str, Series]):
    """The series of a run by metric; that of one that was never logged is empty."""

    __slots__ = ()

    def __missing__(self, name: str) -> Series:
        return EMPTY


EMPTY = Series()
"""The series of a metric that was never logged."""
