"""A sample of raw advantages in a few numbers."""

from __future__ import annotations

from math import nan
from typing import Any

from rldk.core.errors import UsageError

__all__ = ["describe"]

QUANTILES = {"min": 0.0, "p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}


def describe(values: Any, name: str = "advantages") -> dict[str, float]:
    """The canonical advantage metrics of a sample: a sequence, an array or a tensor, of any shape.

    The standard deviation is that of a sample (divided by n - 1), skewness and excess kurtosis are those of the
    population moments, and percentiles are interpolated linearly. They are of the finite values; if some are not, the
    mean and the deviation are NaN, as they would be in the loss. An empty sample says nothing.
    """
    import numpy as np

    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    try:
        every = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise UsageError(f"Expected `{name}` to be a sample of numbers, got {values!r:.80}.") from None
    finite = np.sort(every[np.isfinite(every)])
    if not len(every):
        return {}
    if not len(finite):
        return {"advantage_mean": nan, "advantage_std": nan}
    scale = max(-float(finite[0]), float(finite[-1]))
    ordered = finite / scale if scale > 0.0 else finite
    mean = float(ordered.mean())
    away = ordered - mean if ordered[0] != ordered[-1] else np.zeros(1)
    square = away * away
    m2 = float(square.mean())
    whole = len(finite) == len(every)
    found = {
        "advantage_mean": (mean if ordered[0] != ordered[-1] else float(ordered[0])) * (scale or 1.0) if whole else nan,
        "advantage_std": (m2 * len(finite) / (len(finite) - 1)) ** 0.5 * (scale or 1.0) if whole and len(finite) > 1 else nan,
        "advantage_skewness": float((square * away).mean()) / m2**1.5 if m2 > 0.0 else nan,
        "advantage_kurtosis": float((square * square).mean()) / m2**2 - 3.0 if m2 > 0.0 else nan,
    }
    places = np.array(list(QUANTILES.values())) * (len(finite) - 1)
    between = np.interp(places, np.arange(len(finite)), ordered) * (scale or 1.0)
    found.update(zip((f"advantage_{name}" for name in QUANTILES), between.tolist(), strict=True))
    return {name: value for name, value in found.items() if value == value or not whole}
