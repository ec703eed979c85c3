"""Where a curve is going: the level at which it will settle, when, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, log, nan
from typing import Any

import numpy as np

__all__ = ["Convergence", "predict_convergence"]

LEAST = 20  # points below which no course is predicted
SHORTEST, LONGEST = 1 / 20, 20.0  # time constants that are tried, as shares of the span of the steps
TRIED = 60
SETTLED = 0.95  # share of the way to its level at which a curve counts as settled
BY_CHANCE = 11.0  # times 1/n that a curve of three parameters explains of noise in one of a hundred cases (chi-square)


@dataclass(frozen=True, slots=True)
class Convergence:
    """What the course of a metric says of its future.

    Attributes:
        course: `rising`, `falling`, `settled`, `flat` (no trend beyond chance), or `unknown` (too few points).
        level: where it settles; NaN where that cannot be told.
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


def predict_convergence(steps: Sequence[float], values: Sequence[float]) -> Convergence:
    """Fit `level - gap * exp(-t / tau)`, by least squares over a grid of time constants, and read the future from it.

    Args:
        steps: the steps, rising.
        values: the metric at those steps; pairs with a value that is not finite are left out.
    """
    t, y = np.asarray(steps, float), np.asarray(values, float)
    kept = np.isfinite(t) & np.isfinite(y)
    t, y = t[kept], y[kept]
    if len(t) < LEAST or not t[-1] > t[0]:
        return Convergence()
    start, span = t[0], t[-1] - t[0]
    x = (t - start) / span
    constant = float(((y - y.mean()) ** 2).sum())
    if constant <= 1e-12 * max(float((y**2).sum()), 1e-300):
        return Convergence("settled", float(y.mean()), float(start), 0.0, 1.0)
    tried = np.geomspace(SHORTEST, LONGEST, TRIED)
    rough = min((_fit(np.exp(-x / tau), y)[0], tau) for tau in tried)[1]
    fine = rough * np.geomspace(tried[0] / tried[1], tried[1] / tried[0], TRIED)
    tau = float(min((_fit(np.exp(-x / tau), y)[0], tau) for tau in fine)[1])
    error, level, gap = _fit(np.exp(-x / tau), y)
    confidence = max(1.0 - error / constant, 0.0)
    if confidence < BY_CHANCE / len(y):
        return Convergence("flat", float(y.mean()), nan, nan, confidence)
    course = "rising" if gap < 0.0 else "falling"
    if _fit(x, y)[0] <= 1.02 * error and tau > 1.0:
        return Convergence(course, nan, inf, 1.0, confidence)  # a straight line is as good: it does not bend yet
    remaining = float(np.exp(-1.0 / tau))
    plateau = start + span * tau * -log(1.0 - SETTLED)
    return Convergence("settled" if remaining < 1.0 - SETTLED else course, level, float(plateau), remaining, confidence)


def _fit(x: Any, y: Any) -> tuple[float, float, float]:
    """Squared error, intercept and slope of a line through the points."""
    centred = x - x.mean()
    slope = float((centred * (y - y.mean())).sum() / (centred**2).sum())
    intercept = float(y.mean() - slope * x.mean())
    return float(((y - intercept - slope * x) ** 2).sum()), intercept, slope
