"""A change of the mean, where the level before it is not known."""

from __future__ import annotations

from math import copysign, inf

from rldk.core.stats.base import ScalarStatistic, check_number, check_window

__all__ = ["PageHinkley"]

_HUGE = 1e300


class PageHinkley(ScalarStatistic):
    """Two-sided Page–Hinkley test: cumulative deviations from the running mean, in the units of the values.

    `rise` is how far the sum of (value - mean - delta) is above its minimum, `fall` how far that of
    (value - mean + delta) is below its maximum; each sum forgets by the factor `alpha`. A change is `detected` when one
    of them exceeds `threshold`, after `min_count` values; with the next value the test starts anew on the level it
    finds. The same test, with the same defaults, as river's `drift.PageHinkley`.

    D. V. Hinkley, *Inference about the change-point from cumulative sum tests*, Biometrika 58, 1971.
    """

    __slots__ = (
        "_down",
        "_highest",
        "_lowest",
        "_mean",
        "_up",
        "alpha",
        "count",
        "delta",
        "detected",
        "min_count",
        "threshold",
    )
    parameters = ("delta", "threshold", "alpha", "min_count")
    delta: float
    threshold: float
    alpha: float
    min_count: int
    count: int
    detected: bool
    _mean: float
    _up: float
    _lowest: float
    _down: float
    _highest: float

    def __init__(
        self, delta: float = 0.005, threshold: float = 50.0, alpha: float = 0.9999, *, min_count: int = 30
    ) -> None:
        self.delta = check_number("delta", delta, least=0.0)
        self.threshold = check_number("threshold", threshold, above=0.0)
        self.alpha = check_number("alpha", alpha, above=0.0, most=1.0)
        self.min_count = check_window("min_count", min_count, least=1)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._start()

    def _start(self) -> None:
        self.count = 0
        self.detected = False
        self._mean = self._up = self._down = 0.0
        self._lowest = inf
        self._highest = -inf

    def _add(self, value: float) -> None:
        if self.detected:
            self._start()
        self.count = n = self.count + 1
        mean = self._mean
        self._mean = mean = mean + (value / n - mean / n)
        deviation = value - mean
        if not -_HUGE < deviation < _HUGE:
            deviation = copysign(_HUGE, deviation)  # the sums stay finite
        alpha, delta = self.alpha, self.delta
        self._up = up = alpha * self._up + deviation - delta
        self._down = down = alpha * self._down + deviation + delta
        if up < self._lowest:
            self._lowest = up
        if down > self._highest:
            self._highest = down
        if n >= self.min_count:
            self.detected = up - self._lowest > self.threshold or self._highest - down > self.threshold

    @property
    def rise(self) -> float:
        """Evidence for a higher mean, to be compared with `threshold`."""
        return self._up - self._lowest if self.count else 0.0

    @property
    def fall(self) -> float:
        """Evidence for a lower mean, to be compared with `threshold`."""
        return self._highest - self._down if self.count else 0.0

    @property
    def direction(self) -> int:
        """1 where the last value taken showed a rise, -1 for a fall, 0 for no change."""
        if not self.detected:
            return 0
        return 1 if self.rise >= self.fall else -1
