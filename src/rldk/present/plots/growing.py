"""A run that is still being written, as the panels see it: adding events and reading points are cheap at any length."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rldk.core.event import Event
from rldk.present.plots.downsample import Column, Growing, IntArray, pick_extremes
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import DERIVED, Span, derived_names, first_time, hours, hours_at
from rldk.runs.run import Run
from rldk.runs.table import NUMBER

__all__ = ["Cells", "GrowingRun"]

Cells = Mapping[str, tuple[IntArray, FloatArray]]
"""Of each metric the rows that have it, counted from 0, and its values there."""

_ALL = slice(None)


class GrowingRun:
    """A `Source` that takes events as they come. One row per event; a metric that a row does not have is missing, not 0.

    Args:
        run_id: the name of the run.
        dtype: `float32` halves the memory of a long run.
    """

    def __init__(self, run_id: str = "", dtype: npt.DTypeLike = np.float64) -> None:
        self.run_id = run_id
        self.axis = "step"
        self._dtype = dtype
        self._steps = Growing(np.int64)
        self._columns: dict[str, Column] = {}
        self._times = Growing()
        self._started = float("nan")
        self._ordered = {"step": True, "hours": True}

    @classmethod
    def of(cls, run: Run, dtype: npt.DTypeLike = np.float64) -> GrowingRun:
        """A run that was read, to which events may be added."""
        made = cls(run.run_id, dtype)
        cells = {}
        for name, column in run.columns.items():
            rows = np.flatnonzero(column.state == NUMBER)
            cells[name] = (rows, column.values[rows])
        made.extend(run.steps, cells, run.wall_time)
        return made

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """The step of each row."""
        return self._steps.array  # type: ignore[return-value]

    @property
    def times(self) -> FloatArray:
        """When each row was logged, in seconds; NaN if its event has no time."""
        return self._times.array.astype(np.float64, copy=False)

    @property
    def is_timed(self) -> bool:
        """Whether the run can be drawn by hours."""
        late = self.times[-1000:]
        return bool((late[np.isfinite(late)] > self._started).any())

    @property
    def size(self) -> int:
        """How many values it would hold if every row had every metric."""
        return len(self) * len(self._columns)

    def names(self) -> Collection[str]:
        return self._columns.keys()

    def column(self, name: str) -> FloatArray:
        """One metric in every row, NaN where it was not logged."""
        return self._columns[name].at(np.arange(len(self)))

    def take(self, events: Sequence[Event]) -> None:
        """Put events at the end."""
        times = [np.nan if event.wall_time is None else event.wall_time for event in events]
        self.extend([event.step for event in events], _cells_of(events), times)

    def extend(self, steps: npt.ArrayLike, cells: Cells, times: npt.ArrayLike | None = None) -> None:
        """Put rows at the end: their steps, for each metric the rows that have it (from 0) with its values, and their times."""
        base, given = len(self), np.asarray(steps, dtype=np.int64)
        when = np.full(len(given), np.nan) if times is None else np.asarray(times, dtype=np.float64)
        for axis, kept, more in (("step", self.steps, given), ("hours", self.times, when)):
            self._ordered[axis] = self._ordered[axis] and bool((np.diff(more, prepend=kept[-1:]) >= 0).all())
        self._steps.extend(given)
        self._times.extend(when)
        if np.isnan(self._started):
            self._started = first_time(when)
        for name, (rows, values) in [*cells.items(), *self._derive(cells)]:
            if len(rows):
                self._columns.setdefault(name, Column(self._dtype)).extend(base + rows, values)

    @staticmethod
    def _derive(cells: Cells) -> list[tuple[str, tuple[IntArray, FloatArray]]]:
        found = []
        for name in derived_names(cells.keys()):
            operation, left, right = DERIVED[name]
            (rows, one), (others, other) = cells[left], cells[right]
            if rows is not others and not np.array_equal(rows, others):
                rows, first, second = np.intersect1d(rows, others, assume_unique=True, return_indices=True)
                one, other = one[first], other[second]
            with np.errstate(over="ignore", invalid="ignore"):
                found.append((name, (rows, operation(one, other))))
        return found

    def thinned(self, bucket: int) -> GrowingRun:
        """The run with only those rows in which some metric has an extreme of its bucket of so many rows."""
        kept = np.zeros(len(self), dtype=bool)
        for name in self._columns:
            kept[pick_extremes(self.column(name), bucket)] = True
        place = np.cumsum(kept) - 1
        cells = {}
        for name, column in self._columns.items():
            if name not in DERIVED:
                rows = column.rows(np.arange(len(column.pyramid)))
                there = kept[rows]
                cells[name] = (place[rows[there]], column.pyramid.values[there].astype(np.float64))
        made = GrowingRun(self.run_id, self._dtype)
        made.extend(self.steps[kept], cells, self.times[kept])
        return made

    def places(self, steps: FloatArray, axis: str = "step") -> FloatArray:
        """Where steps lie on an axis."""
        return hours_at(steps, self.steps, self.times, self._started) if axis == "hours" else steps

    def points(
        self, names: Sequence[str], buckets: int, span: Span = None, axis: str = "step"
    ) -> tuple[FloatArray, list[FloatArray]]:
        first, stop = self._rows_of(span, axis)
        chosen = []
        for name in names:
            column = self._columns[name]
            begin, end = column.places(np.array([first, stop])).tolist()
            chosen.append(column.rows(column.pyramid.pick(buckets, begin, end)))
        rows = np.unique(np.concatenate(chosen))
        main = self._columns[names[0]]
        places = main.places(rows)
        inside = places < len(main.pyramid)
        rows, places = rows[inside], places[inside]
        rows = rows[main.rows(places) == rows]
        x = self.along(axis, rows)
        there = np.isfinite(x)
        if span is not None and not self._ordered[axis]:
            there &= (x >= span[0]) & (x <= span[1])
        return x[there], [self._columns[name].at(rows[there]) for name in names]

    def along(self, axis: str, rows: IntArray | slice = _ALL) -> FloatArray:
        """Where rows lie on an axis."""
        return hours(self.times[rows], self._started) if axis == "hours" else self.steps[rows].astype(np.float64)

    def _rows_of(self, span: Span, axis: str) -> tuple[int, int]:
        if span is None or not self._ordered[axis]:
            return 0, len(self)
        along = self.steps if axis == "step" else self.times
        low, high = span if axis == "step" else (self._started + 3600.0 * end for end in span)
        return int(np.searchsorted(along, low, "left")), int(np.searchsorted(along, high, "right"))


def _cells_of(events: Sequence[Event]) -> Cells:
    """The metrics of events as columns. Events with the same keys are turned together: a third quicker than one by one."""
    groups: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
    for row, event in enumerate(events):
        keys = tuple(event.metrics)
        group = groups.get(keys)
        if group is None:
            group = groups[keys] = ([], [])
        group[0].append(row)
        group[1].extend(event.metrics.values())
    parts: dict[str, list[tuple[IntArray, FloatArray]]] = {}
    for keys, (places, flat) in groups.items():
        rows = np.array(places, dtype=np.intp)
        if keys:
            for name, values in zip(keys, np.array(flat, dtype=np.float64).reshape(len(rows), len(keys)).T, strict=True):
                parts.setdefault(name, []).append((rows, values))
    return {name: found[0] if len(found) == 1 else _joined(found) for name, found in parts.items()}


def _joined(parts: list[tuple[IntArray, FloatArray]]) -> tuple[IntArray, FloatArray]:
    rows = np.concatenate([rows for rows, _ in parts])
    values = np.concatenate([values for _, values in parts])
    order = np.argsort(rows, kind="stable")
    return rows[order], values[order]
