"""From runs to panels: the standard panels that a run has metrics for, and one panel for each other metric."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from rldk.core.catalog import entry_of
from rldk.present.plots.panel import STYLES, Band, Curve, FloatArray, Level, Mark, Panel
from rldk.present.plots.source import DERIVED, Source, Span
from rldk.present.plots.standard import STANDARD, CurveSpec, PanelSpec
from rldk.signals.kl import UNITS

__all__ = [
    "KL_TITLE", "finish", "metric_panel", "metric_unit", "needs_log", "other_panels", "panels_of", "show_target", "unit_of",
]  # fmt: skip

BUCKETS = 700
KL_TITLE = "KL from the reference"
"""The title of the KL where there is no target to show."""

_FAR_ABOVE = 200.0
_MOST_OTHERS = 12
_SETTINGS = frozenset({"settings", "optimisation"})


def panels_of(
    sources: Source | Sequence[Source],
    *,
    buckets: int = BUCKETS,
    span: Span = None,
    marks: Sequence[Mark] = (),
    kl_target: float | None = None,
    only: Collection[str] | None = None,
    x_log: bool = False,
) -> list[Panel]:
    """The standard panels that these runs have metrics for; several runs are drawn over each other.

    Args:
        buckets: into how many buckets the rows are divided; each keeps its minimum, its maximum and its gaps.
        span: the part of the x axis to show, in steps, or in hours if that is the axis of the runs.
        marks: moments to mark in every panel, each given by its step.
        kl_target: the KL target, if the log does not have it.
        only: the keys of the panels to draw; by default all.
        x_log: a logarithmic x axis, for runs of very different lengths.
    """
    runs = [sources] if not isinstance(sources, Sequence) else list(sources)
    if not runs:
        return []
    made = []
    for spec in _specs_for(runs):
        if only is None or spec.key in only:
            panel = _panel_of(spec, runs, buckets, span)
            if panel is not None:
                made.append(panel)
                show_target(panel, kl_target)
    finish(made, runs[0], marks, x_log)
    return made


def _specs_for(runs: Sequence[Source]) -> Iterator[PanelSpec]:
    """The standard panels, and after those of the reward one with the functions that the reward is the sum of."""
    yield from (spec for spec in STANDARD if spec.group == "Reward")
    names = sorted({name for run in runs for name in run.names() if name.startswith("reward_function_mean/")})[:_MOST_OTHERS]
    functions = tuple(CurveSpec(name.partition("/")[2], name) for name in names)
    yield PanelSpec("reward_functions", "Reward", "Reward functions", "reward", functions)
    yield from (spec for spec in STANDARD if spec.group != "Reward")


def finish(panels: list[Panel], first: Source, marks: Sequence[Mark] = (), x_log: bool = False) -> None:
    """Set up the x axis of the panels, and add the marks, which are given by step, where they lie on it."""
    places = first.places(np.array([mark.x for mark in marks], dtype=np.float64)).tolist()
    placed = [replace(mark, x=x) for mark, x in zip(marks, places, strict=True) if isfinite(x)]
    for panel in panels:
        panel.marks = [*panel.marks, *placed]
        panel.x_label, panel.x_log = first.axis, x_log


def show_target(panel: Panel, kl_target: float | None) -> None:
    """Draw the KL target into the panel of the KL, unless the log has one; with neither, the title does not name it."""
    if panel.key != "kl" or any(curve.metric == "target_kl" for curve in panel.curves):
        return
    if kl_target is not None:
        panel.levels.append(Level(kl_target, "target"))
    if not panel.levels:
        panel.title = KL_TITLE


def _panel_of(spec: PanelSpec, runs: Sequence[Source], buckets: int, span: Span) -> Panel | None:
    """One panel of the table for these runs; `None` if none of them has its metrics."""
    needed = spec.curves[: spec.needs]
    if not any(_metric(curve, run) for curve in needed for run in runs):
        return None
    curves: list[Curve] = []
    levels = list(spec.levels)
    for number, run in enumerate(runs):
        found = [curve for curve in spec.curves if _metric(curve, run)]
        for place, curve in enumerate(found):
            made = _curve(curve, run, buckets, span, place)
            if len(runs) > 1:  # the colour stands for the run, so the line style must stand for the curve
                style = made.style if made.style != "solid" else STYLES[min(place, len(STYLES) - 1)]
                made = replace(made, colour=number, run=run.run_id, style=style, bands=())
            if curve.metrics == "target_kl" and len(made.y) and isfinite(made.y[0]) and (made.y == made.y[0]).all():
                level = Level(float(made.y[0]), "target")
                levels += [level] if level not in levels else []
            elif len(made.y):
                curves.append(made)
    if not curves:
        return None
    panel = Panel(spec.key, spec.group, spec.title, unit_of(spec, curves, runs), curves, levels, limits=spec.limits)
    panel.log = spec.log and needs_log(panel)
    return panel


def _metric(curve: CurveSpec, run: Source) -> str | None:
    names = run.names()
    return next((name for name in curve.metrics.split() if name in names), None)


def _curve(spec: CurveSpec, run: Source, buckets: int, span: Span, colour: int) -> Curve:
    metric = _metric(spec, run)
    assert metric is not None
    bands = [band for choices in spec.bands if (band := _band(choices, run))]
    columns = [metric, *(name for _, low, high in bands for name in (low, high))]
    x, ys = run.points(columns, buckets, span)
    labels = spec.label.split("|")
    label = labels[min(spec.metrics.split().index(metric), len(labels) - 1)]
    made = tuple(Band(ys[1 + 2 * n], ys[2 + 2 * n], name) for n, (name, _, _) in enumerate(bands))
    return Curve(label, metric, x, ys[0], made, spec.style, colour)


def _band(choices: str, run: Source) -> tuple[str, str, str] | None:
    """The first of the bands that the run has: its label and its two columns."""
    for given in choices.split("|"):
        label, _, columns = given.partition(":")
        low, high = columns.split()
        if low in run.names() and high in run.names():
            return label.strip(), low, high
    return None


def unit_of(spec: PanelSpec, curves: Sequence[Curve], runs: Sequence[Source]) -> str:
    """The unit; for a KL also per token or per response, where that is known."""
    if spec.key != "kl":
        return spec.unit
    named = curves[0].metric.partition("_per_")[2]
    per = {named} if named else {getattr(run, "reductions", {}).get(curves[0].metric, "") for run in runs}
    word = UNITS.get(per.pop()) if len(per) == 1 else None
    return f"{spec.unit} per {word}" if word else spec.unit


def needs_log(panel: Panel) -> bool:
    """Whether no value is negative and the maximum is far above the median, so that a linear axis would show a flat line."""
    values = [curve.y[np.isfinite(curve.y)] for curve in panel.curves]
    joined = np.concatenate(values) if values else np.zeros(0)
    positive = joined[joined > 0]
    if not len(positive) or (joined < 0).any() or len(positive) < 0.5 * len(joined):
        return False
    return bool(positive.max() / _FAR_ABOVE > np.median(positive))


def metric_unit(name: str) -> str:
    """The unit of a metric; empty where it is a plain number or not known."""
    entry = entry_of(name)
    return entry.unit if entry and entry.unit != "1" else ""


def metric_panel(name: str, curves: list[Curve]) -> Panel:
    """The panel of one metric, by its name."""
    return Panel(name, "Other", name, metric_unit(name), curves)


def other_panels(
    run: Source, *, buckets: int = BUCKETS, span: Span = None, marks: Sequence[Mark] = (), x_log: bool = False
) -> list[Panel]:
    """One panel for each metric that no standard panel shows, unless it is constant."""
    shown = {name for spec in STANDARD for curve in spec.curves for name in curve.metrics.split()}
    shown |= {
        name for spec in STANDARD for curve in spec.curves for band in curve.bands for name in band.replace("|", " ").split()
    }
    shown |= {name.replace("_mean-std", "_std") for name in DERIVED}
    made: list[Panel] = []
    for name in run.names():
        entry = entry_of(name)
        if name in shown or name in DERIVED or name.startswith("reward_function_") or (entry and entry.group in _SETTINGS):
            continue
        x, (y,) = run.points([name], buckets, span)
        if not _varies(y):
            continue
        made.append(metric_panel(name, [Curve(name, name, x, y)]))
        if len(made) == _MOST_OTHERS:
            break
    for panel in made:
        panel.log = needs_log(panel)
    finish(made, run, marks, x_log)
    return made


def _varies(values: FloatArray) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite) > 1 and finite.min() != finite.max())
