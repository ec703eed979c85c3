"""What trackers ask of a series: where it is, how noisy, and where it is going; and how often something was so."""

from __future__ import annotations

from collections import deque
from math import nan
from typing import Any

from rldk.core.stats.base import Statistic, check_window
from rldk.core.stats.slope import Line, RollingSlope

__all__ = ["RollingShare", "Trend"]


class Trend(Statistic):
    """The last `window` values and the straight line through them. Values wait until it is asked for, or fill a window."""

    __slots__ = ("_line", "_waiting", "window")
    parameters = ("window",)
    window: int
    _line: RollingSlope
    _waiting: list[float]

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, least=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._line = RollingSlope(self.window)
        self._waiting = []

    def add(self, value: float) -> None:
        """Take a value that is known to be finite."""
        waiting = self._waiting
        waiting.append(value)
        if len(waiting) >= self.window:
            self._settle()

    def _settle(self) -> RollingSlope:
        if self._waiting:
            self._line.extend(self._waiting)
            self._waiting.clear()
        return self._line

    def line(self) -> Line:
        """Mean, spread about the line, slope, its t value, and the rise of the line over the window."""
        return self._settle().line()

    @property
    def count(self) -> int:
        """How many values there are in the window."""
        return self._settle().count

    @property
    def std(self) -> float:
        """Standard deviation of the window."""
        return self._settle().std

    def state_dict(self) -> dict[str, Any]:
        self._settle()
        return super().state_dict()


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
