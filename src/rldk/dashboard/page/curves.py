"""Panels on the page: two beside each other where there is room."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import streamlit as st

from rldk.core.text import clean
from rldk.dashboard.client import RemoteRun
from rldk.dashboard.page.words import safe
from rldk.plots.build import other_panels, panels_of
from rldk.plots.panel import Curve, FloatArray, Mark, Panel
from rldk.plots.plotly_figure import plotly_spec
from rldk.plots.png import file_name

__all__ = ["draw_panels", "marks_of", "panels_for", "smoothed"]

_MOST_MARKS = 12
BUCKETS = 300
_FONT = '"Source Sans", "Source Sans Pro", "Source Sans 3", sans-serif'


def marks_of(incidents: Sequence[dict[str, Any]]) -> list[Mark]:
    """The latest incidents as marks on the curves."""
    return [
        Mark(float(incident["step"]), clean(incident["title"], 24), incident["severity"], clean(incident["title"], 200))
        for incident in incidents[-_MOST_MARKS:]
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
    shown = [mark for mark in marks if span is None or span[0] <= mark.x <= span[1]]
    panels = panels_of(list(runs), buckets=BUCKETS, span=span, marks=shown, only=only)
    if others and runs:
        panels += other_panels(runs[0], buckets=BUCKETS, marks=shown)
    return [panel for panel in panels if groups is None or panel.group in groups]


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


@cache
def _says_alt() -> bool:
    return "alt" in inspect.signature(st.plotly_chart).parameters


def draw_panels(
    panels: Sequence[Panel], *, dark: bool, revision: str, span: tuple[float, float] | None, place: str, run: str
) -> None:
    """Draw panels; `revision` must stay the same for a zoom to survive a refresh."""
    columns = st.columns(2, gap="medium") if len(panels) > 1 else [st.container()]
    for number, panel in enumerate(panels):
        with columns[number % len(columns)]:
            draw_panel(panel, dark=dark, revision=revision, span=span, place=place, run=run)


def draw_panel(panel: Panel, *, dark: bool, revision: str, span: tuple[float, float] | None, place: str, run: str) -> None:
    """Draw one panel."""
    figure = plotly_spec(panel, dark=dark, height=290, revision=revision)
    layout = figure["layout"]
    layout["dragmode"], layout["font"]["family"], layout["yaxis"]["fixedrange"] = "zoom", _FONT, True
    if span is not None:
        layout["xaxis"]["range"] = list(span)
    options: dict[str, Any] = {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": "png", "scale": 2, "filename": file_name(f"{run}-{panel.key}")},
    }
    more: dict[str, Any] = {"alt": panel.alt} if _says_alt() else {}
    st.plotly_chart(figure, theme=None, key=f"{place}-{panel.key}", config=options, **more)


def nothing_to_draw(what: str) -> None:
    """Say that there is nothing, and why that may be."""
    st.html(f'<div class="rldk"><div class="note soft">{safe(what)}</div></div>')
