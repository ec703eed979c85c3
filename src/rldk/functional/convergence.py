"""Where a curve is going: the level at which it will settle, when, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, log, nan
from typing import Any

import numpy as np

from rldk.core.stats.base import NOISE_PER_STEP

__all__ = ["Convergence", "Forecast", "forecast", "predict_convergence"]

MIN_POINTS = 20  # points below which no course is predicted
SHORTEST, LONGEST = 1 / 20, 20.0  # time constants that are tried, as shares of the span of the steps
TRIED = 60
SETTLED = 0.95  # share of the way to its level at which a curve counts as settled
SHARE, FEWEST = 5, 5  # the level now is the mean of the last fifth of the points, at least five
OF_SPREAD = 0.25  # what is added to the error: this share of the spread so far
LARGEST = 1e150  # values beyond it have no square that is a number, and count as not finite
BOUNDS = {"rising": (0.2, 3.6), "falling": (0.2, 3.6), "settled": (0.0, 1.8), "flat": (-1.6, 1.6)}
"""The 80 % interval for each course, in standard errors from the level now, in the direction of the course: healthy runs go on
more often than they stop, and a settled curve creeps on. Quantiles of the healthy runs of the tune split;
`benchmarks/detection/forecast.py` checks them over the whole corpus."""
OFF_NOISE, OFF_RANGE = 4.0, 0.02
"""The last rows contradict a curve that is away from them by more than this many standard errors and this share of the range."""
BY_CHANCE = 11.0  # times 1/n that a curve of three parameters explains of noise in one of a hundred cases (chi-square)


@dataclass(frozen=True, slots=True)
class Convergence:
    """What the course of a metric says of its future.

    Attributes:
        course: `rising`, `falling`, `settled`, `flat` (no trend beyond chance), or `unknown` (too few points).
        level: where it settles; NaN where that cannot be predicted.
        plateau_step: the step at which 95 % of the way is done; infinite where the curve does not bend yet.
        remaining: the share of the way that is still to go.
        confidence: the share of the variance that the curve explains beyond a constant, in [0, 1].
    """

    course: str = "unknown"
    level: float = nan
    plateau_step: float = nan
    remaining: float = nan
    confidence: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; what is not a finite number is `None`."""
        return {name: value if isinstance(value, str) or isfinite(value) else None for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where a metric will be at a later step: its level, and the interval in which four of five healthy runs end."""

    step: float
    level: float
    low: float
    high: float


def forecast(steps: Sequence[float], values: Sequence[float], at: float) -> Forecast | None:
    """The level of a metric at a later step, with an 80 % interval; `None` where the points are too few to tell.

    The interval starts from the level now. Its width comes from the noise between rows and the spread so far, its
    direction from the course of the fitted curve. A metric that has stayed between 0 and 1 is taken to stay there.
    """
    t, y = _finite(steps, values)
    share = _is_share(y)
    found, y = _described(t, y)
    if found.course == "unknown":
        return None
    kept = _recent(y)
    level, spread, noise = float(y[-kept:].mean()), float(y.std()), _noise(y)
    error = float(np.sqrt(2.0 * noise**2 / kept + (OF_SPREAD * spread) ** 2))
    sign = {"rising": 1.0, "falling": -1.0}.get(found.course, 1.0 if level > float(y.mean()) else -1.0)
    low, high = sorted(level + sign * bound * error for bound in BOUNDS[found.course])
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    return Forecast(at, 0.5 * (low + high), low, high)


def _finite(steps: Sequence[float], values: Sequence[float]) -> tuple[Any, Any]:
    t, y = np.asarray(steps, float), np.asarray(values, float)
    kept = np.isfinite(t) & (np.abs(y) < LARGEST)
    return t[kept], y[kept]


def _recent(y: Any) -> int:
    """How many of the last rows make up the level now."""
    return max(FEWEST, len(y) // SHARE)


def _noise(y: Any) -> float:
    """The standard deviation of independent noise between rows."""
    return NOISE_PER_STEP * float(np.abs(np.diff(y)).mean())


def _is_share(y: Any) -> bool:
    return bool(((y >= 0.0) & (y <= 1.0)).all())


def predict_convergence(steps: Sequence[float], values: Sequence[float]) -> Convergence:
    """Fit `level - gap * exp(-t / tau)`, by least squares over a grid of time constants, and read the future from it.

    A metric whose last rows are constant has settled there. Where the last rows contradict the curve, as after a reward that
    rose and then fell, the later half is fitted alone.

    Args:
        steps: the steps, rising.
        values: the metric at those steps; pairs with a value that is not finite are left out.
    """
    return _described(*_finite(steps, values))[0]


def _described(t: Any, y: Any) -> tuple[Convergence, Any]:
    """What the curve says that describes the last rows, and the values that it was fitted to."""
    if len(t) < MIN_POINTS or not t[-1] > t[0]:
        return Convergence(), y
    since = len(y) - max(MIN_POINTS, _recent(y))
    if float(np.ptp(y[since:])) <= 1e-6 * float(np.abs(y[since:]).max()) + 1.0 / LARGEST:
        return Convergence("settled", float(y[-1]), float(t[since]), 0.0, 1.0), y[since:]
    found, curve = _predict(t, y)
    return _described(t[len(t) // 2 :], y[len(y) // 2 :]) if _contradicts(y, curve) else (found, y)


def _predict(t: Any, y: Any) -> tuple[Convergence, Any]:
    """What the fitted curve says, and its values."""
    start, span = t[0], t[-1] - t[0]
    x = (t - start) / span
    mean, constant = float(y.mean()), float(((y - y.mean()) ** 2).sum())
    tried = np.geomspace(SHORTEST, LONGEST, TRIED)
    rough = min((_fit(np.exp(-x / tau), y)[0], tau) for tau in tried)[1]
    fine = rough * np.geomspace(tried[0] / tried[1], tried[1] / tried[0], TRIED)
    tau = float(min((_fit(np.exp(-x / tau), y)[0], tau) for tau in fine)[1])
    error, level, gap = _fit(np.exp(-x / tau), y)
    curve = level + gap * np.exp(-x / tau)
    confidence = max(1.0 - error / constant, 0.0)
    if confidence < BY_CHANCE / len(y):
        return Convergence("flat", mean, nan, nan, confidence), np.full(len(y), mean)
    course = "rising" if gap < 0.0 else "falling"
    remaining, settled = float(np.exp(-1.0 / tau)), float(start + span * tau * -log(1.0 - SETTLED))
    if remaining < 1.0 - SETTLED:
        return Convergence("settled", level, settled, remaining, confidence), curve
    straight = _fit(x, y)[0] <= 1.02 * error and tau > 1.0
    if straight or (_is_share(y) and not 0.0 <= level <= 1.0):
        return Convergence(course, nan, inf, 1.0, confidence), curve  # it bends too little to tell where it ends
    return Convergence(course, level, settled, remaining, confidence), curve


def _contradicts(y: Any, curve: Any) -> bool:
    """Whether the last rows leave the curve, in level or in direction, beyond their noise."""
    kept = _recent(y)
    left = (y - curve)[-kept:]
    error = OFF_NOISE * _noise(y[-kept:]) / kept**0.5
    level, way = abs(float(left.mean())), abs(_fit(np.linspace(0.0, 1.0, kept), left)[2])
    small = OFF_RANGE * float(np.ptp(y))
    return bool(level > max(error, small) or way > max(12.0**0.5 * error, small))


def _fit(x: Any, y: Any) -> tuple[float, float, float]:
    """Squared error, intercept and slope of a line through the points."""
    centred = x - x.mean()
    slope = float((centred * (y - y.mean())).sum() / (centred**2).sum())
    intercept = float(y.mean() - slope * x.mean())
    return float(((y - intercept - slope * x) ** 2).sum()), intercept, slope
