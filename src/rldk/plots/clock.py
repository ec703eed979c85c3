"""Time as an axis: the hours since a run began, for those who would rather see time than steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rldk.core.errors import UsageError
from rldk.plots.panel import FloatArray

__all__ = ["AXES", "check_axis", "first_time", "hours", "hours_at", "is_timed"]

AXES = ("step", "hours")
_HOUR = 3600.0


def check_axis(axis: str) -> str:
    """The axis, if it is one."""
    if axis not in AXES:
        raise UsageError(f"Expected `axis` to be one of {AXES}, got {axis!r}.")
    return axis


def first_time(times: FloatArray) -> float:
    """When a run began: the first time that its log has; NaN where it has none."""
    finite = np.isfinite(times)
    return float(times[finite.argmax()]) if finite.any() else float("nan")


def is_timed(times: FloatArray) -> bool:
    """Whether a log has times that go on, without which there is no axis of hours."""
    finite = times[np.isfinite(times)]
    return bool(len(finite) > 1 and finite.max() > finite.min())


def hours(times: FloatArray, start: float) -> FloatArray:
    """Times as hours since the start."""
    return (times - start) / _HOUR


def hours_at(asked: FloatArray, steps: npt.NDArray[np.int64], times: FloatArray, start: float) -> FloatArray:
    """The hours at which steps were reached first; NaN where the log has no time there."""
    if not len(steps):
        return np.full(len(asked), np.nan)
    rows = np.searchsorted(np.maximum.accumulate(steps), asked)
    return np.where(np.isnan(asked), np.nan, hours(times[np.minimum(rows, len(steps) - 1)], start))
