"""Fewer points that tell the same: of each bucket of rows the lowest, the highest, and the first that is not finite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rldk.core.errors import UsageError

__all__ = ["IntArray", "bucket_size", "keep_extremes", "pick_extremes"]

IntArray = npt.NDArray[np.intp]


def bucket_size(rows: int, buckets: int) -> int:
    """How many rows a bucket has, if there are to be at most so many buckets."""
    if buckets < 1:
        raise UsageError(f"Expected at least 1 bucket, got {buckets!r}.")
    return max(1, -(-rows // buckets))


def pick_extremes(values: npt.NDArray[np.floating], size: int) -> IntArray:
    """The positions to keep if each `size` rows make a bucket: its lowest, its highest, its first that is not finite.

    Nothing else is needed for the picture to have the same outline: a spike of one row among a million stays, and a gap
    stays a gap. The first and the last row are kept as well, so that a curve begins and ends where it does.
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
    """The positions of the extremes of each row of a table, counted through all of it."""
    if not table.size:
        return np.zeros(0, dtype=np.intp)
    finite = np.isfinite(table)
    starts = np.arange(len(table)) * table.shape[1]
    has = finite.any(axis=1)
    lowest = (starts + np.where(finite, table, np.inf).argmin(axis=1))[has]
    highest = (starts + np.where(finite, table, -np.inf).argmax(axis=1))[has]
    broken = ~finite
    first = (starts + broken.argmax(axis=1))[broken.any(axis=1)]
    return np.concatenate([lowest, highest, first])


def keep_extremes(columns: Sequence[npt.NDArray[np.floating]], buckets: int) -> IntArray:
    """The rows to keep of columns that belong together, such as a mean and its band: the extremes of each of them."""
    if not columns:
        return np.zeros(0, dtype=np.intp)
    size = bucket_size(len(columns[0]), buckets)
    if size == 1:
        return np.arange(len(columns[0]))
    return np.unique(np.concatenate([pick_extremes(column, size) for column in columns]))
