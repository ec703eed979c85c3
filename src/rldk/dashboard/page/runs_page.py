"""The page of all runs: the table, and below it the selected runs over each other or compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st
from markupsafe import Markup

from rldk.core.text import counted
from rldk.dashboard.client import Client
from rldk.dashboard.page.comparison import draw_selected
from rldk.dashboard.page.html import errors_as_messages, show
from rldk.dashboard.page.overlay_view import BEHIND, draw_overlay
from rldk.dashboard.page.run_rows import RunRows, rows_of
from rldk.dashboard.page.runs_table import DRAWN, draw_table
from rldk.dashboard.page.sidebar import choose_axis, choose_refresh, draw_title, remarks

__all__ = ["draw_runs_page"]

_TABLE_PAUSE = 3.0
_MANY = 50


def draw_runs_page(client: Client, seconds: float, dark: bool) -> None:
    """Draw the table and what is selected in it; both are refreshed by themselves while runs are written."""
    found = rows_of(client)
    st.session_state[DRAWN] = list(st.session_state["rldk_selected"])
    with st.sidebar:
        draw_title(client.folder)
        st.slider("Smoothing", 0.0, 0.99, step=0.01, key="rldk_smoothing")
        choose_axis(with_time=True)
        follow = choose_refresh(seconds, _remarks(found))
    show(Markup("<h1>Runs</h1>"), "runs")
    pause = max(seconds, _TABLE_PAUSE)
    st.fragment(_guarded, run_every=pause if follow else None)(draw_table, client)
    selected = found.of(st.session_state["rldk_selected"])
    if not selected:
        return
    moving = any(row["status"] == "live" for row in selected) or st.session_state.get(BEHIND)
    tab = st.segmented_control(
        "Selected runs", ["Curves", "Compare"], required=True, key="rldk_tab", label_visibility="collapsed"
    )
    draw: Callable[[Client], None] = draw_selected if tab == "Compare" else partial(draw_overlay, dark=dark)
    st.fragment(_guarded, run_every=max(seconds, 1.0) if follow and moving else None)(draw, client)


def _remarks(found: RunRows) -> list[str]:
    about = found.about
    made = [str(one) for one in about.get("remarks", ())]
    if not about.get("indexed") and len(found.rows) > _MANY:
        made.append("`rldk index` keeps the verdicts of many runs, so that they need not be judged at each start.")
    if about.get("parts"):
        made.append(f"{counted(about['parts'], 'checkpoint')} not listed: the beginning of a run that is.")
    return made + remarks(about)


def _guarded(draw: Callable[[Client], None], client: Client) -> None:
    """No error in a part of the page may break the rest of it."""
    with errors_as_messages("the table of runs or its curves"):
        draw(client)
