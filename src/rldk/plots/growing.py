"""A run that is still being written, as the panels see it: events go in, points come out, both cheap at any length."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rldk.core.event import Event
from rldk.plots.extremes import IntArray
from rldk.plots.panel import FloatArray
from rldk.plots.pyramid import Growing, Pyramid
from rldk.plots.source import DERIVED, Span, derived_names

__all__ = ["GrowingRun"]


class _Column:
    """The values of one metric, and the rows they stand in, which are not kept while it has one in every row."""

    __slots__ = ("_rows", "pyramid")

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.pyramid = Pyramid(dtype)
        self._rows: Growing | None = None

    def extend(self, rows: IntArray, values: FloatArray) -> None:
        if self._rows is None and len(rows) and (rows[-1] - len(rows) + 1 != len(self.pyramid)):
            self._rows = Growing(np.int64)
            self._rows.extend(np.arange(len(self.pyramid)))
        if self._rows is not None:
            self._rows.extend(rows)
        self.pyramid.extend(values)

    def places(self, rows: IntArray) -> IntArray:
        """Where the first value at or after each of these rows stands."""
        if self._rows is None:
            return np.minimum(rows, len(self.pyramid))
        return np.searchsorted(self._rows.array, rows)

    def rows(self, places: IntArray) -> IntArray:
        return places if self._rows is None else self._rows.array[places]  # type: ignore[return-value]

    def at(self, rows: IntArray) -> FloatArray:
        """The values of these rows; NaN where the metric was not logged."""
        places = self.places(rows)
        inside = np.flatnonzero(places < len(self.pyramid))
        found = np.full(len(rows), np.nan)
        same = inside[self.rows(places[inside]) == rows[inside]]
        found[same] = self.pyramid.values[places[same]]
        return found


class GrowingRun:
    """A `Source` that takes events as they come. One row an event; what a row does not have is missing and not 0.

    Args:
        run_id: what the run is called; by default what its events say.
        dtype: `float32` halves the memory of a long run.
    """

    def __init__(self, run_id: str = "", dtype: npt.DTypeLike = np.float64) -> None:
        self._run_id = run_id
        self._dtype = dtype
        self._steps = Growing(np.int64)
        self._columns: dict[str, _Column] = {}
        self._ordered = True

    @property
    def run_id(self) -> str:
        return self._run_id

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> npt.NDArray[np.int64]:
        """The step of each row."""
        return self._steps.array  # type: ignore[return-value]

    @property
    def nbytes(self) -> int:
        """The memory that its numbers hold."""
        return self._steps.nbytes + sum(column.pyramid.nbytes for column in self._columns.values())

    def names(self) -> Collection[str]:
        return self._columns.keys()

    def column(self, name: str) -> FloatArray:
        """One metric in every row, NaN where it was not logged."""
        return self._columns[name].at(np.arange(len(self)))

    def take(self, events: Iterable[Event]) -> int:
        """Put events at the end; how many they were."""
        steps: list[int] = []
        cells: dict[str, tuple[list[int], list[float]]] = {}
        for row, event in enumerate(events):
            steps.append(event.step)
            self._run_id = self._run_id or event.run_id or ""
            for name, value in event.metrics.items():
                found = cells.get(name)
                if found is None:
                    found = cells[name] = ([], [])
                found[0].append(row)
                found[1].append(value)
        self.extend(steps, {name: (np.array(rows), np.array(values)) for name, (rows, values) in cells.items()})
        return len(steps)

    def extend(self, steps: npt.ArrayLike, cells: Mapping[str, tuple[IntArray, FloatArray]]) -> None:
        """Put rows at the end: their steps, and of each metric the rows that have it, counted from 0, with the values."""
        base, given = len(self), np.asarray(steps, dtype=np.int64)
        if len(given):
            before = self.steps[-1:] if base else given[:1]
            self._ordered = self._ordered and bool((np.diff(given, prepend=before) >= 0).all())
        self._steps.extend(given)
        for name, (rows, values) in [*cells.items(), *self._derive(cells)]:
            if len(rows):
                self._columns.setdefault(name, _Column(self._dtype)).extend(base + rows, values)

    @staticmethod
    def _derive(cells: Mapping[str, tuple[IntArray, FloatArray]]) -> list[tuple[str, tuple[IntArray, FloatArray]]]:
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

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        first, stop = self._rows_of(span)
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
        if span is not None and not self._ordered:
            rows = rows[(self.steps[rows] >= span[0]) & (self.steps[rows] <= span[1])]
        return self.steps[rows].astype(np.float64), [self._columns[name].at(rows) for name in names]

    def _rows_of(self, span: Span) -> tuple[int, int]:
        if span is None or not self._ordered:
            return 0, len(self)
        low, high = np.searchsorted(self.steps, span[0], "left"), np.searchsorted(self.steps, span[1], "right")
        return int(low), int(high)
