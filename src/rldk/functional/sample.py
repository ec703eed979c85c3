"""A sample of raw advantages in a few numbers."""

from __future__ import annotations

from math import isfinite, nan, sqrt
from typing import Any

from rldk.core.errors import UsageError

__all__ = ["describe"]

QUANTILES = {
    "advantage_min": 0.0, "advantage_p5": 0.05, "advantage_p25": 0.25, "advantage_median": 0.5, "advantage_p75": 0.75,
    "advantage_p95": 0.95, "advantage_max": 1.0,
}  # fmt: skip


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
    ordered = np.sort(every)  # a copy; what is not finite comes to stand at its ends
    if not len(every):
        return {}
    whole = isfinite(ordered[0]) and isfinite(ordered[-1])
    if not whole:
        ordered = ordered[np.isfinite(ordered)]
    count = len(ordered)
    if not count:
        return {"advantage_mean": nan, "advantage_std": nan}
    scale = max(-float(ordered[0]), float(ordered[-1])) or 1.0
    ordered /= scale
    varies = ordered[0] != ordered[-1]
    mean = float(np.add.reduce(ordered)) / count if varies else float(ordered[0])
    away = ordered - mean if varies else np.zeros(1)
    square = away * away
    m2 = float(np.add.reduce(square)) / len(away)
    found = {
        "advantage_mean": mean * scale if whole else nan,
        "advantage_std": sqrt(m2 * count / (count - 1)) * scale if whole and count > 1 else nan,
        "advantage_skewness": float(square.dot(away)) / len(away) / m2**1.5 if m2 > 0.0 else nan,
        "advantage_kurtosis": float(square.dot(square)) / len(away) / m2**2 - 3.0 if m2 > 0.0 else nan,
    }
    for part, share in QUANTILES.items():
        below, rest = divmod(share * (count - 1), 1.0)
        value = float(ordered[int(below)])
        found[part] = (value + rest * (float(ordered[int(below) + 1]) - value) if rest else value) * scale
    return {name: value for name, value in found.items() if value == value or not whole}
