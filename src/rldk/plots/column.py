"""One metric of a run that grows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rldk.plots.extremes import IntArray
from rldk.plots.panel import FloatArray
from rldk.plots.pyramid import Growing, Pyramid

__all__ = ["Column"]


class Column:
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
