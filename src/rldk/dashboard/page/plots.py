"""Panels as plots in the browser: sent as data, drawn in place, and zoomed by the user.

Streamlit's own plot is thrown away and drawn again at each new point, even while the user drags over it. These stay.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import streamlit as st

from rldk.core.files import file_name
from rldk.dashboard.http_front import PLOTLY
from rldk.dashboard.page.html import note
from rldk.dashboard.page.panels import RunView, smoothed
from rldk.present.html import asset
from rldk.present.plots.panel import Panel
from rldk.present.plots.plotly_figure import plotly_spec

__all__ = ["SPAN", "draw_plots", "figure_of", "packed"]

SPAN = "rldk_span"
_HEIGHT = 290
_FONT = '"Source Sans", "Source Sans Pro", "Source Sans 3", sans-serif'
_CSS = """
.rldk-plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem 2rem; }
.rldk-plots > div { min-height: 290px; min-width: 0; background: inherit; }
.rldk-plots > div:only-child { grid-column: 1 / -1; }
.rldk-plots > div:fullscreen { background: var(--rldk-paper); }
@media (max-width: 900px) { .rldk-plots { grid-template-columns: minmax(0, 1fr); } }
"""

_encode = msgspec.json.Encoder().encode


def draw_plots(view: RunView, panels: Sequence[Panel], place: str, otherwise: str = "") -> None:
    """Draw panels as smooth as the user wants them; without any, say `otherwise`.

    `place` distinguishes the plots of one part of the page from those of another. A range that the user zooms to is kept
    in the session.
    """
    if not panels:
        if otherwise:
            note(otherwise)
        return
    script = asset("rldk.dashboard.page", "plots.js")
    component = st.components.v2.component("rldk_plots", css=_CSS, js=script, isolate_styles=False)
    key = f"rldk_plots_{place}"
    figures = [figure_of(view, smoothed(panel, view.smoothing)) for panel in panels]
    component(key=key, data=_encode({"address": f".{PLOTLY}", "figures": figures}), on_span_change=lambda: _zoomed(key))


def _zoomed(key: str) -> None:
    given = getattr(st.session_state.get(key), "span", None)
    if not given:
        return
    low, high = (None, None) if given.get("all") else (float(given["low"]), float(given["high"]))
    st.session_state[SPAN] = (low, high) if low is not None and high is not None and high > low else None


def figure_of(view: RunView, panel: Panel) -> dict[str, Any]:
    """A panel as the browser takes it; while its `stamp` is the same, the browser does not draw it again."""
    spec = plotly_spec(panel, dark=view.dark, height=_HEIGHT, revision=view.revision)
    layout = spec["layout"]
    layout["dragmode"], layout["font"]["family"], layout["yaxis"]["fixedrange"] = "zoom", _FONT, True
    if view.span is not None:
        layout["xaxis"]["range"] = list(view.span)
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
