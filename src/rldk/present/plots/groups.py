"""Groups of runs as one curve each: the mean over the runs of a group, and a band of one standard deviation between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from warnings import catch_warnings, simplefilter

import numpy as np

from rldk.core.text import counted
from rldk.present.plots.build import KL_TITLE, finish, needs_log, unit_of
from rldk.present.plots.panel import Band, Curve, FloatArray, Panel
from rldk.present.plots.source import Source
from rldk.present.plots.standard import STANDARD

__all__ = ["BAND", "group_panels", "mean_and_band"]

BAND = "± 1 std between runs"
CELLS = 96
_ROWS = 10_000

Groups = Mapping[str, Sequence[Source]]
Points = tuple[FloatArray, FloatArray]


def group_panels(groups: Groups, *names: str, cells: int = CELLS, x_log: bool = False) -> list[Panel]:
    """A panel for the main curve of each standard panel, with one curve and one band per group.

    `names` are keys of standard panels or metrics; by default all standard panels that a group has. The mean ends where fewer
    than half of the runs of a group go on, so that it does not jump when a run ends.
    """
    wanted = [(spec.key, spec) for spec in STANDARD if not names or spec.key in names]
    every = [source for sources in groups.values() for source in sources]
    made = []
    for key, spec in wanted:
        curves = _curves(groups, spec.curves[0].metrics.split(), cells, x_log)
        if curves:
            title, unit = KL_TITLE if key == "kl" else spec.title, unit_of(spec, curves, every)
            panel = Panel(key, spec.group, title, unit, curves, list(spec.levels), limits=spec.limits)
            panel.log = spec.log and needs_log(panel)
            made.append(panel)
    for name in names:
        if name not in {key for key, _ in wanted}:
            curves = _curves(groups, [name], cells, x_log)
            made += [Panel(name, "Other", name, "", curves)] if curves else []
    if every:
        finish(made, every[0], ())
    for panel in made:
        panel.x_log = x_log
    return made


def _curves(groups: Groups, metrics: Collection[str], cells: int, x_log: bool) -> list[Curve]:
    every = [source for sources in groups.values() for source in sources]
    metric = next((name for name in metrics if any(name in source.names() for source in every)), None)
    if metric is None:
        return []
    found = []
    for number, (name, sources) in enumerate(groups.items()):
        points = [_points(source, metric) for source in sources if metric in source.names()]
        made = mean_and_band(points, cells, x_log)
        if made is not None:
            x, mean, low, high = made
            bands = (Band(low, high, BAND),) if np.isfinite(low).any() else ()
            run = f"{name} ({counted(len(points), 'run')})"
            found.append(Curve("mean", metric, x, mean, bands, colour=number, run=run))
    return found


def _points(source: Source, metric: str) -> Points:
    x, (y,) = source.points([metric], _ROWS)
    there = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[there], kind="stable")
    return x[there][order], y[there][order]


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
    sums = np.bincount(places[inside], y[inside], len(middles))
    counts = np.bincount(places[inside], minlength=len(middles))
    between = np.interp(middles, x, y, left=np.nan, right=np.nan)
    means: FloatArray = np.divide(sums, counts, out=between, where=counts > 0)
    return means
