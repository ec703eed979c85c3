"""Where panels get their points from, along steps or along the hours since a run began."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rldk.core.errors import UsageError
from rldk.present.plots.downsample import keep_extremes
from rldk.present.plots.panel import FloatArray
from rldk.runs.columns import ABSENT, TEXT
from rldk.runs.run import Run

__all__ = [
    "AXES", "DERIVED", "RunSource", "Source", "Span", "check_axis", "derived_names", "first_time", "hours", "hours_at",
    "is_date", "is_timed",
]  # fmt: skip

AXES = ("step", "hours")
_HOUR = 3600.0


def check_axis(axis: str) -> str:
    """The axis, if there is one of that name."""
    if axis not in AXES:
        raise UsageError(f"Expected `axis` to be one of {AXES}, got {axis!r}.")
    return axis


def first_time(times: FloatArray) -> float:
    """When a run began: the first time in its log; NaN if it has none."""
    finite = np.isfinite(times)
    return float(times[finite.argmax()]) if finite.any() else float("nan")


def is_date(seconds: float) -> bool:
    """Whether a time is one of the calendar: some logs count from 0."""
    return seconds > 1e8


def is_timed(times: FloatArray) -> bool:
    """Whether a log has times that increase, without which there is no axis of hours."""
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


Span = tuple[float, float] | None
"""The part of the x axis to show, both ends included; `None` is all of it."""


def _ratio(left: FloatArray, right: FloatArray) -> FloatArray:
    found = np.full(len(left), np.nan)
    np.divide(left, right, out=found, where=right > 0)
    return found


_SPREADS = ("reward", "kl", "value", "advantage", "rollout_length")

DERIVED: dict[str, tuple[Callable[[FloatArray, FloatArray], FloatArray], str, str]] = {
    "gradient_ratio": (_ratio, "policy_grad_norm", "value_grad_norm"),
    **{f"{name}_mean-std": (operator.sub, f"{name}_mean", f"{name}_std") for name in _SPREADS},
    **{f"{name}_mean+std": (operator.add, f"{name}_mean", f"{name}_std") for name in _SPREADS},
}
"""Columns that are computed from two others, if a run has both."""


def derived_names(names: Collection[str]) -> list[str]:
    """The computed columns that a run with these metrics has."""
    return [name for name, (_, left, right) in DERIVED.items() if left in names and right in names]


class Source(Protocol):
    """What the panels need to know of a run."""

    @property
    def run_id(self) -> str:
        """What the run is called."""

    @property
    def axis(self) -> str:
        """The x axis of its points: `step`, or `hours` since the run began."""

    def names(self) -> Collection[str]:
        """The metrics with at least one value, including the computed ones."""

    def places(self, steps: FloatArray) -> FloatArray:
        """Where steps lie on that axis; NaN if that is not known."""

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        """The x values and the values of columns that are drawn together, at rows where the first was logged.

        The rows include every extreme of every bucket of each column.
        """


class RunSource:
    """A run that was read from a log, by step or, if its log has times, by hours since it began."""

    def __init__(self, run: Run, axis: str = "step") -> None:
        self._run = run
        self.run_id = run.run_id
        self.axis = "step" if check_axis(axis) == "step" or not is_timed(run.wall_time) else "hours"
        self._start = first_time(run.wall_time)
        self._derived = derived_names(run.columns)
        shown = [name for name, column in run.columns.items() if np.isin(column.state, (ABSENT, TEXT), invert=True).any()]
        self._names = dict.fromkeys((*shown, *self._derived))

    @property
    def reductions(self) -> dict[str, str]:
        """What each metric was reduced over, if that is known."""
        return self._run.coverage.reductions

    def names(self) -> Collection[str]:
        return self._names

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        rows = np.flatnonzero(self._there(names[0]))
        along = hours(self._run.wall_time, self._start) if self.axis == "hours" else self._run.steps.astype(np.float64)
        rows = rows[np.isfinite(along[rows])]
        if span is not None:
            rows = rows[(along[rows] >= span[0]) & (along[rows] <= span[1])]
        columns = [self._values(name)[rows] for name in names]
        kept = keep_extremes(columns, buckets)
        return along[rows[kept]], [column[kept] for column in columns]

    def places(self, steps: FloatArray) -> FloatArray:
        return hours_at(steps, self._run.steps, self._run.wall_time, self._start) if self.axis == "hours" else steps

    def _there(self, name: str) -> npt.NDArray[np.bool_]:
        if name in DERIVED:
            _, left, right = DERIVED[name]
            return self._there(left) & self._there(right)
        state = self._run.columns[name].state
        there: npt.NDArray[np.bool_] = (state != ABSENT) & (state != TEXT)
        return there

    def _values(self, name: str) -> FloatArray:
        if name in DERIVED:
            operation, left, right = DERIVED[name]
            with np.errstate(over="ignore", invalid="ignore"):
                return operation(self._run.columns[left].values, self._run.columns[right].values)
        return self._run.columns[name].values
