"""Panels as Plotly figures, for the dashboard and for notebooks that have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rldk.core.errors import require
from rldk.core.text import clean
from rldk.plots.palette import DARK, LIGHT, Palette
from rldk.plots.panel import Curve, Panel

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plotly_figure"]

_DASHES = {"solid": "solid", "dashed": "dash", "faint": "dot"}


def plotly_figure(
    panel: Panel, *, dark: bool = False, height: int = 300, revision: str = "rldk", titled: bool = True
) -> go.Figure:
    """A panel as a figure. `revision` stays the same between refreshes, so that a zoom survives them.

    Text from logs is put where Plotly shows it as text, with its markup made harmless.
    """
    graphs = require("plotly.graph_objects", extra="dashboard", purpose="An interactive plot")
    palette = DARK if dark else LIGHT
    figure = graphs.Figure()
    for curve in panel.curves:
        for number, band in enumerate(curve.bands):
            figure.add_traces(_band_traces(graphs, curve, number, band.label, palette))
    for curve in panel.curves:
        figure.add_trace(_trace(graphs, panel, curve, palette))
        broken = curve.x[~np.isfinite(curve.y)]
        if len(broken):
            figure.add_trace(_broken(graphs, panel, curve, broken, palette))
    for level in panel.levels:
        figure.add_hline(
            y=level.y, line_dash="dot", line_width=1, line_color=palette.soft,
            annotation_text=_text(level.label), annotation_font_size=10, annotation_font_color=palette.soft,
        )  # fmt: skip
    for mark in panel.marks:
        figure.add_vline(
            x=mark.x, line_width=1.4, line_color=palette.severity(mark.severity),
            line_dash="dot" if mark.severity == "good" else "solid",
            annotation_text=_text(mark.label, 12), annotation_hovertext=_text(mark.text, 200),
            annotation_font_size=11, annotation_font_color=palette.severity(mark.severity),
        )  # fmt: skip
    figure.update_layout(**_layout(panel, palette, height, revision, titled))
    return figure


def _name(curve: Curve) -> str:
    return _text(f"{curve.run} · {curve.label}" if curve.run else curve.label)


def _text(text: str, most: int = 60) -> str:
    """Text without what Plotly takes for markup."""
    return clean(text, most).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "＄")


def _trace(graphs: Any, panel: Panel, curve: Curve, palette: Palette) -> Any:
    finite = np.isfinite(curve.y) & ((curve.y > 0) | (not panel.log))
    width = 1.2 if curve.style == "faint" else 1.8
    return graphs.Scatter(
        x=curve.x, y=np.where(finite, curve.y, np.nan), name=_name(curve), mode="lines" if len(curve.x) > 1 else "markers",
        connectgaps=False, hovertemplate="%{y:.5g}",
        line={"color": palette.curve(curve.colour), "width": width, "dash": _DASHES[curve.style]},
    )  # fmt: skip


def _band_traces(graphs: Any, curve: Curve, number: int, label: str, palette: Palette) -> list[Any]:
    band = curve.bands[number]
    shared = {"x": curve.x, "mode": "lines", "line": {"width": 0}, "showlegend": False, "connectgaps": False}
    colour = palette.curve(curve.colour)
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    low = graphs.Scatter(y=np.where(np.isfinite(band.low), band.low, np.nan), hoverinfo="skip", **shared)
    high = graphs.Scatter(
        y=np.where(np.isfinite(band.high), band.high, np.nan), name=_text(label), hovertemplate="%{y:.5g}",
        fill="tonexty", fillcolor=f"rgba({red},{green},{blue},0.16)", **shared,
    )  # fmt: skip
    return [low, high]


def _broken(graphs: Any, panel: Panel, curve: Curve, places: Any, palette: Palette) -> Any:
    """Crosses where a value is not finite, on the level of the curve's highest value."""
    finite = curve.y[np.isfinite(curve.y) & ((curve.y > 0) | (not panel.log))]
    height = float(finite.max()) if len(finite) else 1.0
    return graphs.Scatter(
        x=places, y=np.full(len(places), height), mode="markers", name=f"{_name(curve)}: not finite", showlegend=False,
        marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": palette.critical}},
        hovertemplate="not a finite number",
    )  # fmt: skip


def _layout(panel: Panel, palette: Palette, height: int, revision: str, titled: bool) -> dict[str, Any]:
    several = sum(1 + len(curve.bands) for curve in panel.curves) > 1 and len(panel.curves) > 1
    unit = f" <span style='color:{palette.soft};font-size:11px'>{_text(panel.unit)}</span>" if panel.unit else ""
    axis = {
        "gridcolor": palette.grid,
        "zeroline": False,
        "linecolor": palette.grid,
        "tickfont": {"color": palette.soft, "size": 11},
    }
    layout: dict[str, Any] = {
        "height": height, "uirevision": revision, "hovermode": "x unified", "showlegend": several,
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": palette.ink},
        "margin": {"l": 48, "r": 12, "t": 44 if titled else 18, "b": 30},
        "legend": {"orientation": "h", "y": -0.16, "x": 0, "font": {"size": 11}},
        "hoverlabel": {"bgcolor": palette.paper, "font": {"color": palette.ink}},
        "xaxis": dict(axis), "yaxis": {**axis, "type": "log" if panel.log else "linear"},
        "meta": {"key": panel.key},
    }  # fmt: skip
    if titled:
        layout["title"] = {"text": f"{_text(panel.title)}{unit}", "font": {"size": 14}, "x": 0, "xanchor": "left"}
    return layout
