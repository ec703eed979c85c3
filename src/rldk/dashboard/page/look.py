"""One look at a run: its head, which of the runs in its file, which range, and the view that was chosen."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.dashboard.client import Client
from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import nothing_to_draw
from rldk.dashboard.page.header import draw_header
from rldk.dashboard.page.plots import SPAN
from rldk.dashboard.page.said import say_nothing_yet
from rldk.dashboard.page.story import toast_news
from rldk.dashboard.page.views import VIEWS

__all__ = ["draw_look"]


def draw_look(client: Client, settings: dict[str, Any]) -> None:
    """Draw a run as it stands now."""
    key = settings["key"]
    state = client.ask("state", key=key, run=st.session_state.get(f"rldk_part_{key}"))
    if not state.get("rows") and not state.get("sketched"):
        say_nothing_yet(state)
        return
    others = [(other, client.ask("state", key=other)) for other in settings["compared"]]
    others = [pair for pair in others if pair[1].get("rows")]
    axis = settings["axis"] if all(one.get("timed") for one in (state, *(other for _, other in others))) else "step"
    span = st.session_state.get(SPAN) if axis == settings["axis"] else None
    look = Look(client, key, state.get("key_of_run"), state, others, span, settings["smoothing"], settings["dark"], axis)
    draw_header(look, settings["view"])
    toast_news(look)
    with st.container():  # each part keeps its place, whether it has something to say or not: what comes after stays put
        _choose_part(key, state)
    with st.container():
        if axis != settings["axis"]:
            nothing_to_draw("There are no times in this log, or in one of those compared: the curves lie along steps.")
        _choose_range(look)
    VIEWS[settings["view"]](look)


def _choose_part(key: str, state: dict[str, Any]) -> None:
    """Which of the runs in one file, where it holds several."""
    runs = dict(state.get("runs") or ())
    if len(runs) > 1:
        names = list(runs)
        place = names.index(state["key_of_run"]) if state.get("key_of_run") in runs else 0
        label = f"This file holds {len(runs)} runs"
        st.selectbox(label, names, place, format_func=lambda name: runs[name], key=f"rldk_part_{key}")


def _choose_range(look: Look) -> None:
    """Say which range is shown, where it is not all, and offer the way back."""
    if look.span is None:
        return
    low, high = look.span
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.html(f'<div class="rldk soft" data-rldk="range">{look.words_of_axis} {low:.6g} to {high:.6g}, in full detail.</div>')
    if right.button("Whole run", key="rldk_whole", width="stretch"):
        st.session_state[SPAN] = None
        st.rerun(scope="fragment")
