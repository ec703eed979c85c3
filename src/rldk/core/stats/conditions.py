"""How often, and for how long, a condition has held."""

from __future__ import annotations

from collections import deque
from math import nan

from rldk.core.stats.base import Statistic, check_window

__all__ = ["RollingShare", "RunLength"]


class RunLength(Statistic):
    """Length of the current run of a condition, and the history of its runs."""

    __slots__ = ("count", "length", "longest", "runs", "true_count")
    count: int
    true_count: int
    length: int
    longest: int
    runs: int

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = self.true_count = self.length = self.longest = self.runs = 0

    def update(self, condition: bool) -> None:
        """Take whether the condition holds now."""
        if condition:
            if not self.length:
                self.runs += 1
            self.length += 1
            self.true_count += 1
            self.longest = max(self.longest, self.length)
        else:
            self.length = 0
        self.count += 1

    @property
    def share(self) -> float:
        """Share of the updates in which the condition held."""
        return self.true_count / self.count if self.count else nan


class RollingShare(Statistic):
    """Share of the last `window` updates in which a condition held; a condition may hold in part."""

    __slots__ = ("_ring", "_total", "window")
    parameters = ("window",)
    window: int
    _ring: deque[float]
    _total: float

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, minimum=1)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._ring = deque(maxlen=self.window)
        self._total = 0.0

    def update(self, condition: float) -> None:
        """Take whether the condition holds now: 1 or `True` if it does, 0 if not, a multiple of a power of 1/2 if in part."""
        ring = self._ring
        if len(ring) == self.window:
            self._total -= ring[0]
        ring.append(condition)
        self._total += condition

    @property
    def count(self) -> int:
        """Number of updates in the window."""
        return len(self._ring)

    @property
    def share(self) -> float:
        """The share; NaN before the first update."""
        return self._total / len(self._ring) if self._ring else nan
