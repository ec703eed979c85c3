"""What is normal for this run."""

from __future__ import annotations

from math import nan

from rldk.core.errors import UsageError
from rldk.core.stats.base import ScalarStatistic, check_number, check_window
from rldk.core.stats.quantiles import RollingQuantiles

__all__ = ["Baseline"]

NORMAL_MEAN_DEVIATION = 1.2533  # the standard deviation of a normal distribution, in mean absolute deviations


class Baseline(ScalarStatistic):
    """A run's own robust level and spread: median and 1.4826 · MAD of its first `warmup` values, then frozen.

    Where more than half of the values are the same the MAD is 0 and says nothing of the others (a gradient norm logged
    as 0 in half of the rows): the spread is then taken from the mean absolute deviation. It is never less than
    `relative_floor` · |location| nor than `absolute_floor`: after a constant start, a rounding error is no alarm.

    With a `window` the baseline follows slowly: it becomes that of the last `window` values, but takes in only those
    with a |score| below `limit`, so that a fault does not become normal; the others are counted in `rejected`. Location
    and scale are brought up to date each time an eighth of the window is new.
    """

    __slots__ = (
        "_fresh",
        "_sample",
        "absolute_floor",
        "count",
        "limit",
        "location",
        "ready",
        "rejected",
        "relative_floor",
        "scale",
        "warmup",
        "window",
    )
    parameters = ("warmup", "window", "limit", "relative_floor", "absolute_floor")
    warmup: int
    window: int | None
    limit: float
    relative_floor: float
    absolute_floor: float
    count: int
    rejected: int
    ready: bool
    location: float
    scale: float
    _sample: RollingQuantiles
    _fresh: int

    def __init__(
        self,
        warmup: int = 20,
        window: int | None = None,
        *,
        limit: float = 4.0,
        relative_floor: float = 0.01,
        absolute_floor: float = 1e-8,
    ) -> None:
        self.warmup = check_window("warmup", warmup, least=2)
        if window is not None and check_window("window", window, least=2) < warmup:
            raise UsageError(f"Expected `window` to be at least `warmup` ({warmup}), got {window}.")
        self.window = window
        self.limit = check_number("limit", limit, above=0.0)
        self.relative_floor = check_number("relative_floor", relative_floor, least=0.0)
        self.absolute_floor = check_number("absolute_floor", absolute_floor, above=0.0)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = self.rejected = self._fresh = 0
        self.ready = False
        self.location = self.scale = nan
        self._sample = RollingQuantiles(self.window or self.warmup)

    def _add(self, value: float) -> None:
        self.count += 1
        if not self.ready:
            self._sample.update(value)
            if self.count == self.warmup:
                self._settle()
        elif self.window is not None:
            if abs(value - self.location) < self.limit * self.scale:
                self._sample.update(value)
                self._fresh += 1
                if self._fresh * 8 >= self.window:
                    self._settle()
            else:
                self.rejected += 1

    def _settle(self) -> None:
        self.ready = True
        self._fresh = 0
        self.location, scale = self._sample.location_scale()
        if scale == 0.0:
            values = self._sample.values
            scale = NORMAL_MEAN_DEVIATION * sum(abs(value - self.location) / len(values) for value in values)
        self.scale = max(scale, self.relative_floor * abs(self.location), self.absolute_floor)

    def score(self, value: float) -> float:
        """Robust z: how many scales `value` is above (or below) the location; NaN until `ready`, or for a NaN.

        An infinite value has an infinite score. Asking does not update.
        """
        return (float(value) - self.location) / self.scale
