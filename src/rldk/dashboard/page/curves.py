"""Panels on the page: which ones, in which range, with what marked, and how smooth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from rldk.core.text import clean
from rldk.dashboard.client import RemoteRun
from rldk.dashboard.page.context import Look
from rldk.dashboard.page.plots import draw_plots
from rldk.dashboard.page.words import safe
from rldk.present.plots.build import other_panels, panels_of
from rldk.present.plots.panel import Curve, FloatArray, Mark, Panel

__all__ = ["draw_panels", "marks_of", "nothing_to_draw", "overview_panels", "panels_for", "smoothed"]

_MOST_MARKS = 12
_OVERVIEW = ("reward", "kl", "entropy", "gradients", "length", "losses", "margin", "accuracy")
BUCKETS = 220  # about one for each two pixels of a plot


def marks_of(incidents: Sequence[dict[str, Any]]) -> list[Mark]:
    """The latest incidents as marks on the curves, by the numbers that their stories have."""
    return [
        Mark(float(incident["step"]), str(number), incident["severity"], clean(incident["title"], 200))
        for number, incident in list(enumerate(incidents, 1))[-_MOST_MARKS:]
    ]


def panels_for(
    runs: Sequence[RemoteRun],
    *,
    span: tuple[float, float] | None,
    marks: Sequence[Mark] = (),
    only: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    others: bool = False,
) -> list[Panel]:
    """The standard panels of these runs in a range; with `others`, what else the first of them logged."""
    panels = panels_of(list(runs), buckets=BUCKETS, span=span, marks=marks, only=only)
    if others and runs:
        panels += other_panels(runs[0], buckets=BUCKETS, marks=marks)
    for panel in panels:
        panel.marks = [mark for mark in panel.marks if span is None or span[0] <= mark.x <= span[1]]
    return [panel for panel in panels if groups is None or panel.group in groups]


def overview_panels(look: Look) -> list[Panel]:
    """The curves that matter most; of a run that has none of them, the first few that it has."""
    marks = marks_of(look.state.get("incidents") or [])
    found = panels_for(look.runs(), span=look.span, marks=marks, only=_OVERVIEW)
    return found or panels_for(look.runs(), span=look.span, marks=marks, others=True)[:6]


def smoothed(panel: Panel, weight: float) -> Panel:
    """The panel with a smooth line over each curve: an exponential mean of the points drawn, the curve itself left faint."""
    if not weight:
        return panel
    curves: list[Curve] = []
    for curve in panel.curves:
        curves.append(replace(curve, style="faint", bands=()))
        curves.append(replace(curve, y=_exponential(curve.y, weight), label=f"{curve.label}, smooth"))
    return replace(panel, curves=curves)


def _exponential(values: FloatArray, weight: float) -> FloatArray:
    """The exponential mean, not biased towards 0 at the start; what is not finite stays a gap, and the mean goes on."""
    made = np.full(len(values), np.nan)
    mean, total = 0.0, 0.0
    for place, value in enumerate(values.tolist()):
        if np.isfinite(value):
            mean = weight * mean + (1.0 - weight) * value
            total = weight * total + (1.0 - weight)
            made[place] = mean / total
    return made


def draw_panels(look: Look, panels: Sequence[Panel], place: str) -> None:
    """Draw panels as smooth as the user wants them."""
    draw_plots(look, [smoothed(panel, look.smoothing) for panel in panels], place)


def nothing_to_draw(what: str) -> None:
    """Say that there is nothing, and why that may be."""
    st.html(f'<div class="rldk"><div class="note soft">{safe(what)}</div></div>')
