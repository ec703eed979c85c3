"""Fewer points with the same outline: the extremes of each bucket of rows, known at every scale while a column grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rldk.core.errors import UsageError
from rldk.present.plots.panel import FloatArray

__all__ = ["Column", "Growing", "IntArray", "Pyramid", "bucket_size", "keep_extremes", "pick_extremes"]

IntArray = npt.NDArray[np.intp]

FAN = 16
_NONE = -1


def bucket_size(rows: int, buckets: int) -> int:
    """The number of rows per bucket, for at most so many buckets."""
    if buckets < 1:
        raise UsageError(f"Expected at least 1 bucket, got {buckets!r}.")
    return max(1, -(-rows // buckets))


def pick_extremes(values: npt.NDArray[np.floating], size: int) -> IntArray:
    """The positions to keep of buckets of `size` rows: the minimum, the maximum and the first non-finite value of each.

    The plot keeps its outline: a spike of one row among a million stays, and a gap stays a gap. The first and the last row
    are kept as well, so that a curve keeps its ends.
    """
    rows = len(values)
    if rows == 0 or size <= 1:
        return np.arange(rows)
    whole = rows // size * size
    parts = [_of_buckets(values[:whole].reshape(-1, size)), np.array([0, rows - 1])]
    if whole < rows:
        parts.append(whole + _of_buckets(values[whole:].reshape(1, -1)))
    return np.unique(np.concatenate(parts))


def _of_buckets(table: npt.NDArray[np.floating]) -> IntArray:
    """The positions of the extremes of all rows of a table, in the flattened table."""
    found = _extremes(table, 0)
    return found[found >= 0]


def _extremes(table: npt.NDArray[np.floating], offset: int) -> npt.NDArray[np.int64]:
    """Of each row of a table the positions of its minimum, its maximum and its first non-finite value; -1 where there is none.

    Positions are those in the flattened table, which begins at `offset`.
    """
    begins = offset + np.arange(len(table)) * table.shape[1]
    found = np.full((len(table), 3), _NONE, dtype=np.int64)
    broken = ~np.isfinite(table)
    gaps = broken.any(axis=1)
    found[:, 0], found[:, 1] = begins + table.argmin(axis=1), begins + table.argmax(axis=1)
    if gaps.any():
        some, where, first = table[gaps], broken[gaps], begins[gaps]
        found[gaps, 0] = first + np.where(where, np.inf, some).argmin(axis=1)
        found[gaps, 1] = first + np.where(where, -np.inf, some).argmax(axis=1)
        found[gaps, 2] = first + where.argmax(axis=1)
        found[broken.all(axis=1), :2] = _NONE
    return found


def keep_extremes(columns: Sequence[npt.NDArray[np.floating]], buckets: int) -> IntArray:
    """The rows to keep of columns that are drawn together, such as a mean and its band: the extremes of each."""
    if not columns:
        return np.zeros(0, dtype=np.intp)
    size = bucket_size(len(columns[0]), buckets)
    if size == 1:
        return np.arange(len(columns[0]))
    return np.unique(np.concatenate([pick_extremes(column, size) for column in columns]))


class Growing:
    """An array that grows at its end; each row is copied a bounded number of times on average."""

    __slots__ = ("_buffer", "_size")

    def __init__(self, dtype: npt.DTypeLike = np.float64, width: int = 0) -> None:
        self._buffer = np.empty((256, width) if width else 256, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> npt.NDArray[np.generic]:
        """The values, as a view that the next `extend` may invalidate."""
        return self._buffer[: self._size]

    def extend(self, values: npt.ArrayLike) -> None:
        """Append values."""
        given = np.asarray(values, dtype=self._buffer.dtype)
        needed = self._size + len(given)
        if needed > len(self._buffer):
            room = max(needed + (needed >> 2), 256)
            buffer = np.empty((room, *self._buffer.shape[1:]), dtype=self._buffer.dtype)
            buffer[: self._size] = self._buffer[: self._size]
            self._buffer = buffer
        self._buffer[self._size : needed] = given
        self._size = needed


class Pyramid:
    """A growing column, with the positions of its extremes in blocks of 16, 256, 4096 … rows.

    Args:
        dtype: `float32` halves the memory, and is precise enough for a screen.
    """

    __slots__ = ("_levels", "_values")

    def __init__(self, dtype: npt.DTypeLike = np.float64) -> None:
        self._values = Growing(dtype)
        self._levels: list[Growing] = []  # of each block the positions of its minimum, maximum and first non-finite value

    def __len__(self) -> int:
        return len(self._values)

    @property
    def values(self) -> npt.NDArray[np.floating]:
        """All values, in order."""
        return self._values.array  # type: ignore[return-value]

    def extend(self, values: npt.ArrayLike) -> None:
        """Append values; the cost depends on how many they are, and not on how many there were."""
        self._values.extend(values)
        number = 0
        while True:
            below = len(self._values) if number == 0 else len(self._levels[number - 1])
            done = len(self._levels[number]) if number < len(self._levels) else 0
            if below // FAN <= done:
                return
            if number == len(self._levels):
                self._levels.append(Growing(np.int64, 3))
            self._levels[number].extend(self._blocks(number, done, below // FAN))
            number += 1

    def _blocks(self, number: int, start: int, stop: int) -> npt.NDArray[np.int64]:
        """The extremes of blocks `start` to `stop` of a level, from the level below it."""
        if number:
            places = self._levels[number - 1].array[start * FAN : stop * FAN]
            return self._best(places.reshape(stop - start, FAN, 3))  # type: ignore[arg-type]
        return _extremes(self.values[start * FAN : stop * FAN].reshape(-1, FAN), start * FAN)

    def _best(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The minimum, the maximum and the first non-finite value of each group of candidates."""
        low, high, broken = places[..., 0], places[..., 1], places[..., 2]
        values = self.values
        row = np.arange(len(places))
        lows = np.where(low >= 0, values[low], np.inf)
        highs = np.where(high >= 0, values[high], -np.inf)
        found = np.empty((len(places), 3), dtype=np.int64)
        found[:, 0] = low[row, lows.argmin(axis=1)]
        found[:, 1] = high[row, highs.argmax(axis=1)]
        found[:, 2] = broken[row, (broken >= 0).argmax(axis=1)]
        return found

    def pick(self, buckets: int, start: int = 0, stop: int | None = None) -> IntArray:
        """The rows to draw from `start` to `stop`: every extreme of about so many buckets."""
        stop = len(self) if stop is None else min(stop, len(self))
        if start < 0:
            raise UsageError(f"Expected `start` to be 0 or more, got {start!r}.")
        if stop <= start:
            return np.zeros(0, dtype=np.intp)
        size = bucket_size(stop - start, buckets)
        level = 0
        while FAN ** (level + 1) <= size and level < len(self._levels):
            level += 1
        if level == 0:
            return start + pick_extremes(self.values[start:stop], size)
        block = FAN**level
        first, last = -(-start // block), stop // block
        grouped = size // block  # blocks of one bucket
        parts = [np.array([start, stop - 1])]
        places = self._levels[level - 1].array[first:last]
        last = first + len(places)
        whole = len(places) // grouped * grouped
        for chosen in (places[:whole].reshape(-1, grouped, 3), places[whole:].reshape(1, -1, 3)):
            if chosen.size:
                parts.append(self._best(chosen).ravel())  # type: ignore[arg-type]
        for begin, end in ((start, min(first * block, stop)), (max(last * block, start), stop)):
            parts.append(begin + pick_extremes(self.values[begin:end], size))
        found = np.unique(np.concatenate(parts))
        return found[found >= 0]


class Column:
    """The values of one metric with their rows, which are only stored once a row lacks the metric."""

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
        """The position of the first value at or after each of these rows."""
        if self._rows is None:
            return np.minimum(rows, len(self.pyramid))
        return np.searchsorted(self._rows.array, rows)

    def rows(self, places: IntArray) -> IntArray:
        return places if self._rows is None else self._rows.array[places]  # type: ignore[return-value]

    def at(self, rows: IntArray) -> FloatArray:
        """The values at these rows; NaN if the metric was not logged."""
        places = self.places(rows)
        inside = np.flatnonzero(places < len(self.pyramid))
        found = np.full(len(rows), np.nan)
        same = inside[self.rows(places[inside]) == rows[inside]]
        found[same] = self.pyramid.values[places[same]]
        return found
