"""From runs to panels: the standard panels that a run has metrics for, and one panel for each other metric."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from rldk.core.catalog import entry_of
from rldk.present.plots.panel import STYLES, Band, Curve, FloatArray, Level, Mark, Panel
from rldk.present.plots.source import DERIVED, Source, Span
from rldk.present.plots.standard import STANDARD, CurveSpec, PanelSpec

__all__ = ["KL_TITLE", "finish", "needs_log", "other_panels", "panel_of", "panels_of", "unit_of"]

BUCKETS = 700
KL_TITLE = "KL from the reference"
"""The title of the KL where there is no target to show."""

_FAR_ABOVE = 200.0
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
    for spec in STANDARD:
        if only is None or spec.key in only:
            panel = panel_of(spec, runs, buckets, span)
            if panel is not None:
                made.append(panel)
                if spec.key == "kl" and kl_target is not None and not any(curve.metric == "target_kl" for curve in panel.curves):
                    panel.levels.append(Level(kl_target, "target"))
                if spec.key == "kl" and not _has_target(panel):
                    panel.title = KL_TITLE
    families = _family_panel(runs, buckets, span) if only is None or "reward_functions" in only else None
    if families is not None:
        place = next((number for number, panel in enumerate(made) if panel.group != "Reward"), len(made))
        made.insert(place, families)
    finish(made, runs[0], marks)
    for panel in made:
        panel.x_log = x_log
    return made


def finish(panels: list[Panel], first: Source, marks: Sequence[Mark]) -> None:
    """Label the x axis of the panels, and add the marks, which are given by step, where they lie on it."""
    places = first.places(np.array([mark.x for mark in marks], dtype=np.float64)).tolist()
    placed = [replace(mark, x=x) for mark, x in zip(marks, places, strict=True) if isfinite(x)]
    for panel in panels:
        panel.marks = [*panel.marks, *placed]
        panel.x_label = first.axis


def _has_target(panel: Panel) -> bool:
    return bool(panel.levels) or any(curve.metric == "target_kl" for curve in panel.curves)


def panel_of(spec: PanelSpec, runs: Sequence[Source], buckets: int = BUCKETS, span: Span = None) -> Panel | None:
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
    reduction = {"sequence": " per response", "token": " per token"}.get(per.pop(), "") if len(per) == 1 else ""
    return spec.unit + reduction


def needs_log(panel: Panel) -> bool:
    """Whether no value is negative and the maximum is far above the median, so that a linear axis would show a flat line."""
    values = [value[np.isfinite(value)] for curve in panel.curves for value in (curve.y,)]
    joined = np.concatenate(values) if values else np.zeros(0)
    positive = joined[joined > 0]
    if not len(positive) or (joined < 0).any() or len(positive) < 0.5 * len(joined):
        return False
    return bool(positive.max() / _FAR_ABOVE > np.median(positive))


def _family_panel(runs: Sequence[Source], buckets: int, span: Span) -> Panel | None:
    """The reward functions that a reward is the sum of, in one panel."""
    curves: list[Curve] = []
    for number, run in enumerate(runs):
        names = sorted(name for name in run.names() if name.startswith("reward_function_mean/"))[:12]
        for place, name in enumerate(names):
            made = _curve(CurveSpec(name.partition("/")[2], name), run, buckets, span, place)
            if len(runs) > 1:
                made = replace(made, colour=number, run=run.run_id, style=STYLES[min(place, len(STYLES) - 1)])
            curves.append(made)
    return Panel("reward_functions", "Reward", "Reward functions", "reward", curves) if curves else None


def other_panels(run: Source, *, buckets: int = BUCKETS, max_panels: int = 12, marks: Sequence[Mark] = ()) -> list[Panel]:
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
        x, (y,) = run.points([name], buckets)
        if not _varies(y):
            continue
        unit = entry.unit if entry and entry.unit != "1" else ""
        made.append(Panel(name, "Other", name, unit, [Curve(name, name, x, y)]))
        if len(made) == max_panels:
            break
    for panel in made:
        panel.log = needs_log(panel)
    finish(made, run, marks)
    return made


def _varies(values: FloatArray) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite) > 1 and finite.min() != finite.max())
