"""Axes: round ticks, a range with some margin, and the mapping from values to coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from rldk.core.text import short_number
from rldk.present.plots.panel import FloatArray, Panel

__all__ = ["Scale", "x_scale", "y_scale"]

_HUGE = 1e300


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of values mapped to a range of coordinates."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, values: FloatArray) -> FloatArray:
        """The coordinates of values; a value outside of the range lies on its edge."""
        low, high = (log10(self.low), log10(self.high)) if self.log else (self.low, self.high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            given = np.log10(np.maximum(values, self.low)) if self.log else values
            share = (np.clip(given, low, high) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def place(self, value: float) -> float:
        """The coordinate of one value."""
        return float(self.at(np.array([value]))[0])

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        """Round values inside the range, with their labels."""
        values = _powers(self.low, self.high, about) if self.log else _rounds(self.low, self.high, about)
        return [(value, _label(value, values)) for value in values]


def _rounds(low: float, high: float, about: int) -> list[float]:
    raw = (high - low) / max(about, 1)
    power = 10.0 ** floor(log10(raw))
    step = next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.8), 10 * power)
    first = ceil(low / step - 1e-9)
    return [number * step + 0.0 for number in range(first, first + about * 3 + 3) if number * step <= high + 1e-9 * step]


def _powers(low: float, high: float, about: int) -> list[float]:
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    if last - first < 1:
        return _rounds(low, high, about)
    step = max(1, -(-(last - first) // about))
    return [10.0**power for power in range(first, last + 1, step)]


def _label(value: float, values: list[float]) -> str:
    size = max(abs(value) for value in values)
    if value == 0:
        return "0"
    if size >= 1e6 or size < 1e-3 or (abs(value) < 1e-3 and len(values) > 1 and values[0] > 0):
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    if size >= 10_000 <= 10 * abs(value) and value == int(value) and value % 100 == 0:
        return f"{value / 1000:g}k"
    return short_number(round(value, 10))


def y_scale(panel: Panel, top: float, bottom: float) -> Scale:
    """The vertical scale of a panel: all finite values, horizontal lines that are near, and a margin."""
    finite = [values[np.isfinite(values) & (np.abs(values) < _HUGE)] for values in panel.values()]
    joined = np.concatenate(finite) if finite else np.zeros(0)
    if panel.log:
        joined = joined[joined > 0]
    if not len(joined):
        return Scale(0.0, 1.0, bottom, top)
    low, high = float(joined.min()), float(joined.max())
    span = high - low
    for level in panel.levels:
        near = low - 2 * span - abs(low) <= level.y <= high + 2 * span + abs(high)
        if near and not (panel.log and level.y <= 0):
            low, high = min(low, level.y), max(high, level.y)
    if panel.log:
        return Scale(low / 1.25, high * 1.25, bottom, top, True)
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - room, high + room
    if panel.limits is not None:
        low, high = max(low, panel.limits[0] - 0.02), min(high, panel.limits[1] + 0.02)
        if high <= low:
            low, high = panel.limits
    return Scale(low, high, bottom, top)


def x_scale(panel: Panel, left: float, right: float) -> Scale:
    """The horizontal scale: the x values of all curves."""
    ends = [(float(curve.x.min()), float(curve.x.max())) for curve in panel.curves if len(curve.x)]
    low, high = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else (0.0, 1.0)
    if panel.x_log and high > 0:
        low = low if low > 0 else min(_first_positive(panel), high / 10)
        return Scale(low, high, left, right, True) if high > low else Scale(low / 2, high * 2, left, right, True)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    return Scale(low, high, left, right)


def _first_positive(panel: Panel) -> float:
    """Where a logarithmic x axis begins; what lies at 0 is drawn at its edge."""
    return min((float(curve.x[curve.x > 0].min()) for curve in panel.curves if (curve.x > 0).any()), default=1.0)
