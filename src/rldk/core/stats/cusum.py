"""A small shift that lasts: the cumulative sum against a known level."""

from __future__ import annotations

from math import isfinite

from rldk.core.stats.base import ScalarStatistic, check_number

__all__ = ["Cusum"]


class Cusum(ScalarStatistic):
    """Two-sided tabular CUSUM of standardised values.

    With z = (value - location) / scale, the two sums are `high = max(0, high + z - drift)` and
    `low = max(0, low - z - drift)`, and a shift is `detected` while one of them is above `threshold`. Shifts of less
    than `drift` standard deviations are ignored; 0.5 and 5 are the usual choice for shifts of about one. A single value
    adds at most `clip` standard deviations: with less than `threshold`, no single spike can raise it.

    It does not start anew by itself: it stays raised until the values come back, or until `reset`. The location and
    scale fixed here can be overridden at each update; where those are of no use (not finite, or a scale that is not
    positive) the value counts as missing.

    E. S. Page, *Continuous inspection schemes*, Biometrika 41, 1954.
    """

    __slots__ = ("_high_since", "_low_since", "clip", "count", "drift", "high", "location", "low", "scale", "threshold")
    parameters = ("drift", "threshold", "location", "scale", "clip")
    drift: float
    threshold: float
    location: float
    scale: float
    clip: float
    count: int
    high: float
    low: float
    _high_since: int
    _low_since: int

    def __init__(
        self,
        drift: float = 0.5,
        threshold: float = 5.0,
        *,
        location: float = 0.0,
        scale: float = 1.0,
        clip: float = 1e300,
    ) -> None:
        self.drift = check_number("drift", drift, least=0.0)
        self.threshold = check_number("threshold", threshold, above=0.0)
        self.location = check_number("location", location)
        self.scale = check_number("scale", scale, above=0.0)
        self.clip = check_number("clip", clip, above=0.0, most=1e300)  # finite, so that the sums can come back
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self.high = self.low = 0.0
        self._high_since = self._low_since = -1

    def update(self, value: float, location: float | None = None, scale: float | None = None) -> None:
        """Take the next value into account, against the location and scale given here or else the fixed ones."""
        value = float(value)
        location = self.location if location is None else float(location)
        scale = self.scale if scale is None else float(scale)
        if not isfinite(value):
            self._leave_out(value)
        elif scale > 0.0 and isfinite(scale) and isfinite(location):
            self._add((value - location) / scale)
        else:
            self.missing += 1

    def _add(self, value: float) -> None:
        """Take a standardised value into account."""
        clip = self.clip
        if value > clip:
            value = clip
        elif value < -clip:
            value = -clip
        high = self.high + value - self.drift
        if high > 0.0:
            if self.high == 0.0:
                self._high_since = self.count + self.missing + self.nonfinite
            self.high = high
        else:
            self.high = 0.0
        low = self.low - value - self.drift
        if low > 0.0:
            if self.low == 0.0:
                self._low_since = self.count + self.missing + self.nonfinite
            self.low = low
        else:
            self.low = 0.0
        self.count += 1

    @property
    def detected(self) -> bool:
        """Whether the values have shifted."""
        return self.high > self.threshold or self.low > self.threshold

    @property
    def direction(self) -> int:
        """1 for an upward shift, -1 for a downward one, 0 for none; where both are raised, the larger."""
        if not self.detected:
            return 0
        return 1 if self.high >= self.low else -1

    @property
    def since(self) -> int | None:
        """The update (from 0, those left out included) at which the shift began, or `None` where none is detected."""
        direction = self.direction
        if not direction:
            return None
        return self._high_since if direction > 0 else self._low_since
