"""Panels as plots in the browser: sent as data, drawn in place, and zoomed by the user.

Streamlit's own plot is thrown away and drawn again at each new point, even while the user drags over it. These stay.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from math import log10
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
import streamlit as st

from rldk.core.files import file_name
from rldk.dashboard.http_front import PLOTLY
from rldk.dashboard.page.html import note
from rldk.dashboard.page.panels import smoothed
from rldk.present.html import asset
from rldk.present.plots.panel import Panel
from rldk.present.plots.plotly_figure import plotly_spec

__all__ = ["SPAN", "PlotView", "draw_plots", "figure_of", "packed", "show_range"]

SPAN = "rldk_span"
_HEIGHT = 290
_FONT = '"Source Sans", "Source Sans Pro", "Source Sans 3", sans-serif'
_CSS = """
.rldk-plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem 2rem; }
.rldk-plots > div { min-height: 290px; min-width: 0; background: inherit; }
.rldk-plots > div:only-child { grid-column: 1 / -1; }
.rldk-plots > div:fullscreen { background: var(--rldk-paper); }
@media (max-width: 900px) { .rldk-plots { grid-template-columns: minmax(0, 1fr); } }
.rldk-legend { display: flex; flex-wrap: wrap; gap: 0.2rem 0.4rem; max-height: 7.2rem; overflow-y: auto; margin-bottom: 0.6rem; }
.rldk-legend button { display: inline-flex; align-items: center; gap: 0.4rem; max-width: 22rem; padding: 0.1rem 0.5rem;
  font: inherit; font-size: 0.85rem; color: var(--rldk-ink); background: none; border: 1px solid var(--rldk-grid);
  border-radius: 0.8rem; cursor: pointer; }
.rldk-legend button > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; direction: rtl; }
.rldk-legend button > i { flex: none; width: 0.9rem; height: 0.25rem; border-radius: 2px; }
.rldk-legend button[aria-pressed=false] { opacity: 0.45; text-decoration: line-through; }
.rldk-cross { position: absolute; width: 0; border-left: 1px dashed var(--rldk-soft); pointer-events: none; z-index: 2; }
"""

_encode = msgspec.json.Encoder().encode


class PlotView(Protocol):
    """How plots are to be drawn: the range of the x axis, the smoothing, the colours, and what a zoom belongs to."""

    @property
    def span(self) -> tuple[float, float] | None: ...
    @property
    def smoothing(self) -> float: ...
    @property
    def dark(self) -> bool: ...
    @property
    def revision(self) -> str: ...
    @property
    def label(self) -> str: ...


def draw_plots(
    view: PlotView, panels: Sequence[Panel], place: str, otherwise: str = "", *,
    legend: Sequence[dict[str, str]] = (), on_pin: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Draw panels as smooth as the user wants them; without any, say `otherwise`.

    `place` distinguishes the plots of one part of the page from those of another. A range that the user zooms to is kept
    in the session. With a `legend` (the `run` of curves, a label and a colour for each), the plots have this one in common.
    `on_pin` is called with the key of a panel whose pin was clicked.
    """
    if not panels:
        if otherwise:
            note(otherwise)
        return
    script = asset("rldk.dashboard.page", "plots.js")
    component = st.components.v2.component("rldk_plots", css=_CSS, js=script, isolate_styles=False)
    key = f"rldk_plots_{place}"
    figures = [figure_of(view, smoothed(panel, view.smoothing), shared_legend=bool(legend)) for panel in panels]
    data = {"address": f".{PLOTLY}", "figures": figures, "legend": list(legend), "pins": on_pin is not None}

    def pinned() -> None:
        given = getattr(st.session_state.get(key), "pin", None)
        if on_pin is not None and isinstance(given, str):
            on_pin(given)

    component(key=key, data=_encode(data), on_span_change=lambda: _zoomed(key), on_pin_change=pinned)


def _zoomed(key: str) -> None:
    given = getattr(st.session_state.get(key), "span", None)
    if not given:
        return
    low, high = (None, None) if given.get("all") else (float(given["low"]), float(given["high"]))
    st.session_state[SPAN] = (low, high) if low is not None and high is not None and high > low else None


def figure_of(view: PlotView, panel: Panel, *, shared_legend: bool = False) -> dict[str, Any]:
    """A panel as the browser takes it; while its `stamp` is the same, the browser does not draw it again."""
    spec = plotly_spec(panel, dark=view.dark, height=_HEIGHT, revision=view.revision)
    layout = spec["layout"]
    layout["dragmode"], layout["font"]["family"], layout["yaxis"]["fixedrange"] = "zoom", _FONT, True
    if view.span is not None:
        layout["xaxis"]["range"] = _range(view.span, panel)
    if panel.x_label == "time":
        layout["xaxis"]["type"] = "date"
    if shared_legend:
        layout["showlegend"], layout["margin"]["b"], layout["hovermode"] = False, 30, "closest"
        for trace in spec["data"]:
            if trace.get("hovertemplate"):
                trace["hovertemplate"] = "%{fullData.name}<br>%{x}: %{y:.5g}<extra></extra>"
    for trace in spec["data"]:
        trace["x"], trace["y"] = packed(trace["x"]), packed(trace["y"], exact=False)
    spec["config"] = {
        "displaylogo": False,
        "showSendToCloud": False,  # nothing leaves this machine by a click
        "plotlyServerURL": "",
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "sendChartToCloud"],
        "toImageButtonOptions": {"format": "png", "scale": 2, "filename": file_name(f"{view.label}-{panel.key}")},
    }
    text = _encode(spec)
    return {"key": panel.key, "alt": panel.alt, "stamp": zlib.crc32(text), "spec": msgspec.Raw(text)}


def _range(span: tuple[float, float], panel: Panel) -> list[float]:
    """A range in the terms of Plotly's axis: exponents of a logarithmic one, milliseconds of one of dates."""
    if panel.x_label == "time":
        return [1000.0 * end for end in span]
    if panel.x_log:
        return [log10(max(end, 1e-9)) for end in span]
    return list(span)


def packed(values: np.ndarray[Any, np.dtype[np.float64]], *, exact: bool = True) -> dict[str, str]:
    """Numbers as Plotly reads them from bytes, of 4 bytes where a plot needs no more: half of what a refresh would send."""
    array = np.ascontiguousarray(values, dtype="<f8")
    finite = array[np.isfinite(array)]
    largest = float(np.abs(finite).max()) if len(finite) else 0.0
    if len(finite) == len(array) and largest < 2**31 and bool((finite == np.trunc(finite)).all()):
        kind = "i4"
    else:
        kind = "f8" if exact or largest > 1e37 else "f4"
    return {"dtype": kind, "bdata": base64.b64encode(array.astype(f"<{kind}").tobytes()).decode()}


def show_range(words: str, whole: str, key: str, scope: Literal["app", "fragment"] = "app") -> None:
    """The range that is shown, and a button to return to the whole."""
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.html(f'<div class="rldk soft" data-rldk="range">{words}</div>')
    if right.button(whole, key=key, width="stretch"):
        st.session_state[SPAN] = None
        st.rerun(scope=scope)
