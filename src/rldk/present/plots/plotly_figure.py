"""Panels as Plotly figures, for the dashboard and for notebooks that have it."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING, Any

import numpy as np

from rldk.core.errors import require
from rldk.core.text import clean
from rldk.present.palette import DARK, LIGHT, Palette
from rldk.present.plots.panel import Curve, Panel

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plotly_figure", "plotly_spec"]

_DASHES = {"solid": "solid", "dashed": "dash", "faint": "dot"}


def plotly_figure(panel: Panel, *, dark: bool = False, height: int = 300, revision: str = "rldk") -> go.Figure:
    """A panel as a figure. `revision` stays the same between refreshes, so that a zoom survives them.

    Markup in text from logs is escaped.
    """
    graphs = require("plotly.graph_objects", extra="dashboard", purpose="An interactive plot")
    figure: go.Figure = graphs.Figure(**plotly_spec(panel, dark=dark, height=height, revision=revision))
    return figure


def plotly_spec(panel: Panel, *, dark: bool = False, height: int = 300, revision: str = "rldk") -> dict[str, Any]:
    """The same as plain dictionaries: building a figure by calls of Plotly takes many times as long."""
    palette = DARK if dark else LIGHT
    traces: list[dict[str, Any]] = []
    for curve in panel.curves:
        for number, band in enumerate(curve.bands):
            traces += _band_traces(curve, number, band.label, palette)
    for curve in panel.curves:
        traces.append(_trace(panel, curve, palette))
        broken = curve.x[~np.isfinite(curve.y)]
        if len(broken):
            traces.append(_broken(panel, curve, broken, palette))
    layout = _layout(panel, palette, height, revision)
    levels = [level for level in panel.levels if level.y > 0 or not panel.log]
    layout["shapes"] = [_level_line(level.y, palette.soft) for level in levels]
    layout["annotations"] = [
        {
            "x": 1, "xref": "x domain", "xanchor": "right", "y": log10(level.y) if panel.log else level.y, "yref": "y",
            "yanchor": "bottom", "text": _text(level.label), "showarrow": False, "font": {"size": 10, "color": palette.soft},
            "bgcolor": _transparent(palette.paper, 0.8), "borderpad": 1,
        }
        for level in levels
    ]  # fmt: skip
    for mark in panel.marks:
        colour = palette.severity(mark.severity)
        layout["shapes"].append({
            "type": "line", "x0": mark.x, "x1": mark.x, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain",
            "line": {"width": 1.4, "color": colour, "dash": "dot" if mark.severity == "good" else "solid"},
        })  # fmt: skip
        layout["annotations"].append({
            "x": mark.x, "xref": "x", "xanchor": "center", "y": 1, "yref": "y domain", "yanchor": "bottom", "showarrow": False,
            "text": _text(mark.label, 12), "hovertext": _text(mark.text, 200), "bgcolor": colour, "borderpad": 1,
            "font": {"size": 10, "color": palette.paper},
        })  # fmt: skip
    return {"data": traces, "layout": layout}


def _level_line(y: float, colour: str) -> dict[str, Any]:
    ends = {"x0": 0, "x1": 1, "xref": "x domain", "y0": y, "y1": y, "yref": "y"}
    return {"type": "line", **ends, "line": {"width": 1, "color": colour, "dash": "dot"}}


def _text(text: str, most: int = 60) -> str:
    """Text without what Plotly would read as markup."""
    return clean(text, most).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "＄")


def _trace(panel: Panel, curve: Curve, palette: Palette) -> dict[str, Any]:
    finite = np.isfinite(curve.y) & ((curve.y > 0) | (not panel.log))
    width = 1.2 if curve.style == "faint" else 1.8
    return {
        "type": "scatter", "x": curve.x, "y": np.where(finite, curve.y, np.nan), "name": _text(curve.name),
        "legendgroup": curve.run, "mode": "lines" if len(curve.x) > 1 else "markers", "connectgaps": False,
        "hovertemplate": "%{y:.5g}",
        "line": {"color": palette.curve(curve.colour), "width": width, "dash": _DASHES[curve.style]},
    }  # fmt: skip


def _band_traces(curve: Curve, number: int, label: str, palette: Palette) -> list[dict[str, Any]]:
    band = curve.bands[number]
    shared = {"type": "scatter", "x": curve.x, "mode": "lines", "line": {"width": 0}, "showlegend": False, "connectgaps": False}
    shared["legendgroup"] = curve.run
    low = {**shared, "y": np.where(np.isfinite(band.low), band.low, np.nan), "hoverinfo": "skip"}
    high = {
        **shared, "y": np.where(np.isfinite(band.high), band.high, np.nan), "name": _text(label), "hovertemplate": "%{y:.5g}",
        "fill": "tonexty", "fillcolor": _transparent(palette.curve(curve.colour), 0.16),
    }  # fmt: skip
    return [low, high]


def _transparent(colour: str, share: float) -> str:
    """A transparent colour."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:g})"


def _broken(panel: Panel, curve: Curve, places: Any, palette: Palette) -> dict[str, Any]:
    """Crosses where a value is not finite, at the height of the curve's maximum."""
    finite = curve.y[np.isfinite(curve.y) & ((curve.y > 0) | (not panel.log))]
    height = float(finite.max()) if len(finite) else 1.0
    return {
        "type": "scatter", "x": places, "y": np.full(len(places), height), "mode": "markers", "showlegend": False,
        "name": f"{_text(curve.name)}: not finite", "legendgroup": curve.run, "hovertemplate": "not a finite number",
        "marker": {"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": palette.critical}},
    }  # fmt: skip


def _layout(panel: Panel, palette: Palette, height: int, revision: str) -> dict[str, Any]:
    several = sum(1 + len(curve.bands) for curve in panel.curves) > 1 and len(panel.curves) > 1
    unit = f" <span style='color:{palette.soft};font-size:11px'>{_text(panel.unit)}</span>" if panel.unit else ""
    axis = {
        "gridcolor": palette.grid,
        "zeroline": False,
        "linecolor": palette.grid,
        "tickfont": {"color": palette.soft, "size": 11},
    }
    return {
        "height": height, "uirevision": revision, "hovermode": "x unified", "showlegend": several,
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font": {"color": palette.ink},
        "margin": {"l": 48, "r": 12, "t": 44, "b": 54 if several else 30, "autoexpand": len(panel.curves) > 3},
        "legend": {"orientation": "h", "y": -0.16, "x": 0, "font": {"size": 11}},
        "hoverlabel": {"bgcolor": palette.paper, "font": {"color": palette.ink}},
        "xaxis": {
            **axis, "ticksuffix": " h" if panel.x_label == "hours" else "", **({"type": "log"} if panel.x_log else {}),
        },
        "yaxis": {**axis, "type": "log" if panel.log else "linear"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": palette.soft, "activecolor": palette.ink},
        "meta": {"key": panel.key},
        "title": {"text": f"{_text(panel.title)}{unit}", "font": {"size": 14, "weight": 600}, "x": 0, "xanchor": "left"},
    }  # fmt: skip
