"""Groups of runs as one curve each: the mean over the runs of a group, and a band of one standard deviation between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from rldk.comparison.mean_curve import CELLS, Points, finite_points, mean_and_band
from rldk.core.text import counted
from rldk.present.plots.build import finish, metric_panel, needs_log, show_target, unit_of
from rldk.present.plots.panel import Band, Curve, Panel
from rldk.present.plots.source import Source, Span
from rldk.present.plots.standard import STANDARD

__all__ = ["BAND", "group_panels"]

BAND = "± 1 std between runs"
_ROWS = 10_000

Groups = Mapping[str, Sequence[Source]]


def group_panels(
    groups: Groups, *names: str, buckets: int = CELLS, span: Span = None, kl_target: float | None = None, x_log: bool = False
) -> list[Panel]:
    """A panel for the main curve of each standard panel, with one curve and one band per group.

    `names` are keys of standard panels or metrics; by default all standard panels that a group has. The mean ends where fewer
    than half of the runs of a group go on, so that it does not jump when a run ends. The options are those of `panels_of`.
    """
    wanted = [(spec.key, spec) for spec in STANDARD if not names or spec.key in names]
    every = [source for sources in groups.values() for source in sources]
    made = []
    for key, spec in wanted:
        curves = _curves(groups, spec.curves[0].metrics.split(), buckets, span, x_log)
        if curves:
            unit = unit_of(spec, curves, every)
            panel = Panel(key, spec.group, spec.title, unit, curves, list(spec.levels), limits=spec.limits)
            panel.log = spec.log and needs_log(panel)
            show_target(panel, kl_target)
            made.append(panel)
    for name in names:
        if name not in {key for key, _ in wanted}:
            curves = _curves(groups, [name], buckets, span, x_log)
            made += [metric_panel(name, curves)] if curves else []
    if every:
        finish(made, every[0], x_log=x_log)
    return made


def _curves(groups: Groups, metrics: Collection[str], buckets: int, span: Span, x_log: bool) -> list[Curve]:
    every = [source for sources in groups.values() for source in sources]
    metric = next((name for name in metrics if any(name in source.names() for source in every)), None)
    if metric is None:
        return []
    found = []
    for number, (name, sources) in enumerate(groups.items()):
        points = [_points(source, metric, span) for source in sources if metric in source.names()]
        made = mean_and_band(points, buckets, x_log)
        if made is not None:
            x, mean, low, high = made
            bands = (Band(low, high, BAND),) if np.isfinite(low).any() else ()
            run = f"{name} ({counted(len(points), 'run')})"
            found.append(Curve("mean", metric, x, mean, bands, colour=number, run=run))
    return found


def _points(source: Source, metric: str, span: Span) -> Points:
    x, (y,) = source.points([metric], _ROWS, span)
    return finite_points(x, y)
