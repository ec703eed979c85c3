"""Several runs as one curve: the mean over them, and a band of one standard deviation between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

__all__ = ["CELLS", "FloatArray", "Points", "cell_means", "finite_points", "mean_and_band"]

FloatArray = npt.NDArray[np.float64]
Points = tuple[FloatArray, FloatArray]

CELLS = 96
"""The most points of a curve."""


def finite_points(x: npt.NDArray[Any], y: FloatArray) -> Points:
    """The points of a curve that are finite, in the order of x."""
    there = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[there], kind="stable")
    return x[there][order].astype(np.float64), y[there][order]


def mean_and_band(
    runs: Sequence[Points], cells: int = CELLS, x_log: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """The x values, the mean of several curves in equal parts of the x axis, and both ends of the band around it.

    The band is one standard deviation wide on both sides, but never beyond what a run had: a length is not negative. It is NaN
    where a run is alone. `None` where no curve has a value.
    """
    given = [(x, y) for x, y in runs if len(x)]
    if not given:
        return None
    start = min(float(x[0]) for x, _ in given)
    ends = sorted((float(x[-1]) for x, _ in given), reverse=True)
    end = ends[(len(ends) + 1) // 2 - 1]
    if end <= start:
        end = start + 1.0  # a single step
    count = int(min(cells, max(2, np.median([int((x <= end).sum()) for x, _ in given]))))
    edges = _edges(start, end, count, x_log)
    middles = np.sqrt(edges[1:] * edges[:-1]) if x_log and edges[0] > 0 else (edges[1:] + edges[:-1]) / 2
    table = np.array([_in_cells(x, y, edges, middles) for x, y in given])
    there = np.isfinite(table).sum(axis=0)
    with catch_warnings(), np.errstate(all="ignore"):
        simplefilter("ignore", RuntimeWarning)  # a cell without values is NaN, as it should be
        mean = np.where(there * 2 >= len(given), np.nanmean(table, axis=0), np.nan)
        spread = np.where(there > 1, np.nanstd(table, axis=0, ddof=1), np.nan)
        low, high = np.maximum(mean - spread, np.nanmin(table, axis=0)), np.minimum(mean + spread, np.nanmax(table, axis=0))
    kept = np.isfinite(mean)
    return middles[kept], mean[kept], low[kept], high[kept]


def _edges(start: float, end: float, cells: int, x_log: bool) -> FloatArray:
    if not x_log:
        return np.linspace(start, end, cells + 1)
    low = start if start > 0 else min(1.0, end / 10)
    edges = np.geomspace(low, end, cells + 1)
    edges[0] = min(start, low)
    return edges


def _in_cells(x: FloatArray, y: FloatArray, edges: FloatArray, middles: FloatArray) -> FloatArray:
    """The mean of a curve in each cell; between its values where a cell has none; NaN beyond its ends."""
    places = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(middles) - 1)
    inside = x <= edges[-1]
    return cell_means(places[inside], y[inside], np.interp(middles, x, y, left=np.nan, right=np.nan))


def cell_means(places: npt.NDArray[Any], values: FloatArray, empty: FloatArray) -> FloatArray:
    """The mean of the values in each cell, given the cell of each; `empty` has what a cell without values gets."""
    with np.errstate(invalid="ignore"):  # an infinite value may meet another
        sums = np.bincount(places, values, len(empty))
    counts = np.bincount(places, minlength=len(empty))
    means: FloatArray = np.divide(sums, counts, out=empty, where=counts > 0)
    return means
