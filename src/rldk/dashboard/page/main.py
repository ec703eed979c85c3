"""The whole page: the sidebar with the runs, and beside it the run that was chosen."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import streamlit as st

from rldk.dashboard.client import Client, ReaderEnded
from rldk.dashboard.page.look import draw_look
from rldk.dashboard.page.picker import choose_axis, choose_runs, remarks
from rldk.dashboard.page.said import say, say_no_runs
from rldk.dashboard.page.style import css
from rldk.dashboard.page.views import VIEWS
from rldk.dashboard.page.words import safe

__all__ = ["draw_page", "pause"]

logger = logging.getLogger("rldk")

_FILES = "rldk_files"
_STILL_SECONDS = 20.0
_STILL_PAUSE = 5.0


def draw_page(client: Client, seconds: float) -> None:
    """Draw everything once; two parts of it then draw themselves again as time goes by."""
    dark = is_dark()
    st.html(css(dark))
    try:
        listing = client.ask("list")
    except ReaderEnded as error:
        say(str(error))
        return
    files = {key: (name, size, age) for key, name, size, age in listing["files"]}
    st.session_state[_FILES] = set(files)
    follow = seconds > 0
    with st.sidebar:
        st.html(f'<div class="rldk"><h1>rldk</h1><p class="soft">{safe(Path(client.folder).name or client.folder, 80)}</p></div>')
        key, compared = choose_runs(files)
        smoothing = st.slider("Smoothing", 0.0, 0.99, 0.0, 0.01, key="rldk_smoothing")
        axis = choose_axis()
        if seconds > 0:
            follow = st.toggle("Follow", value=True, key="rldk_follow", help="Look for news all the time")
        st.button("Look again", key="rldk_again", width="stretch")
        for remark in remarks(listing):
            st.caption(remark)
    moving = key is not None and files[key][2] < _STILL_SECONDS
    st.fragment(_watch_folder, run_every=1.0 if follow else None)(client, key, moving)
    if key is None:
        say_no_runs(client.folder, listing)
        return
    view = st.segmented_control(
        "View", list(VIEWS), default="Overview", required=True, key="rldk_view", label_visibility="collapsed"
    )
    settings = {"key": key, "compared": compared, "smoothing": smoothing, "dark": dark, "view": view or "Overview", "axis": axis}
    st.fragment(_draw_run, run_every=pause(seconds, moving) if follow else None)(client, settings)


def pause(seconds: float, moving: bool) -> float:
    """The time between two looks: a run that stands still is looked at less often, but soon enough when it goes on."""
    return seconds if moving else max(seconds, _STILL_PAUSE)


def is_dark() -> bool:
    """Whether the browser shows the page on dark paper."""
    theme = getattr(st.context, "theme", None)
    return getattr(theme, "type", None) == "dark"


def _watch_folder(client: Client, shown: str | None, moving: bool) -> None:
    """Draw the page anew when a run has come or gone, or when the one that is shown moves again, or no more."""
    try:
        files = {key: age for key, _, _, age in client.ask("list")["files"]}
    except ReaderEnded:
        return
    moves = shown is not None and files.get(shown, _STILL_SECONDS) < _STILL_SECONDS
    if set(files) != st.session_state.get(_FILES) or moves != moving:
        st.rerun()


def _draw_run(client: Client, settings: dict[str, Any]) -> None:
    """The run as it stands now; the one guard of the page."""
    try:
        draw_look(client, settings)
    except ReaderEnded as error:
        say(str(error))
    except Exception as error:
        if type(error).__module__.startswith("streamlit"):  # how Streamlit itself begins anew
            raise
        logger.exception("The dashboard could not draw %s", settings["key"])
        say(f"This view cannot be drawn ({type(error).__name__}). The terminal of the dashboard has the details.")
