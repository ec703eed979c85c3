"""The whole page: the sidebar, and beside it the run that was chosen, in the view that was chosen."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.core.text import short_number
from rldk.dashboard.client import Client, ReaderEnded, workbench_of
from rldk.dashboard.page import address
from rldk.dashboard.page.announcements import draw_banner, mark_tab, offer_browser_alerts, toast_new_incidents
from rldk.dashboard.page.html import errors_as_messages, message, note, piece, show, style
from rldk.dashboard.page.panels import RunView
from rldk.dashboard.page.plots import SPAN, show_range
from rldk.dashboard.page.run_rows import rows_of
from rldk.dashboard.page.runs_page import draw_runs_page
from rldk.dashboard.page.sidebar import choose_axis, choose_refresh, choose_runs, draw_title, notification_remarks, remarks
from rldk.dashboard.page.summary import draw_header
from rldk.dashboard.page.views import VIEWS

__all__ = ["draw_page", "pause"]

_FILES = "rldk_files"
_STILL_SECONDS = 20.0
_STILL_PAUSE = 5.0


def draw_page(client: Client, seconds: float) -> None:
    """Draw everything once; the folder and the run are then checked again every so many seconds (0: only on request)."""
    dark = getattr(getattr(st.context, "theme", None), "type", None) == "dark"
    st.html(style(dark))
    address.load()
    try:
        bench = workbench_of(client.folder)
        if _shows_table(bench):
            draw_runs_page(bench, seconds, dark)
            return
        listing = client.ask("list")
    except ReaderEnded as error:
        message(str(error))
        return
    files = {key: (name, size, age) for key, name, size, age in listing["files"]}
    st.session_state[_FILES] = set(files)
    with st.sidebar:
        draw_title(client.folder)
        if files and st.button("All runs", key="rldk_all_runs", icon=":material/table_rows:", width="stretch"):
            st.session_state.update(rldk_run=None, rldk_table_page="runs", rldk_span=None)
            st.rerun()
        key, compared = choose_runs(files)
        smoothing = st.slider("Smoothing", 0.0, 0.99, step=0.01, key="rldk_smoothing")
        axis = choose_axis()
        follow = choose_refresh(seconds, [*remarks(listing), *notification_remarks(client.folder)])
    is_live = key is not None and files[key][2] < _STILL_SECONDS
    st.fragment(_check_folder, run_every=1.0 if follow else None)(client, key, is_live)
    if key is None:
        _say_no_runs(client.folder, listing)
        return
    if st.session_state["rldk_view"] not in VIEWS:
        st.session_state["rldk_view"] = "Overview"
    view = st.segmented_control("View", list(VIEWS), required=True, key="rldk_view", label_visibility="collapsed")
    address.write(address.RUN_PAGE)
    settings = {"key": key, "compared": compared, "smoothing": smoothing, "dark": dark, "view": view or "Overview", "axis": axis}
    st.fragment(_draw_run_or_message, run_every=pause(seconds, is_live) if follow else None)(client, settings)


def _shows_table(bench: Client) -> bool:
    """Whether the table of runs is to be shown: unless a run was chosen, or there is none to choose from."""
    if st.session_state["rldk_run"] is not None:
        return False
    found = rows_of(bench)
    return len(found.rows) + found.about.get("unopened", 0) > 1 or bool(st.session_state["rldk_table_page"])


def pause(seconds: float, is_live: bool) -> float:
    """Seconds between two refreshes of the run; fewer refreshes for one that is not being written to."""
    return seconds if is_live else max(seconds, _STILL_PAUSE)


def _check_folder(client: Client, shown: str | None, was_live: bool) -> None:
    """Draw the whole page again when a run appears or disappears, or when the shown one starts or stops being written to."""
    try:
        ages = {key: age for key, _, _, age in client.ask("list")["files"]}
    except ReaderEnded:
        return
    is_live = shown is not None and ages.get(shown, _STILL_SECONDS) < _STILL_SECONDS
    if set(ages) != st.session_state.get(_FILES) or is_live != was_live:
        st.rerun()


def _draw_run_or_message(client: Client, settings: dict[str, Any]) -> None:
    """The run as it is now; no error in a view may break the page."""
    with errors_as_messages(settings["key"]):
        _draw_run(client, settings)


def _draw_run(client: Client, settings: dict[str, Any]) -> None:
    key = settings["key"]
    state = client.ask("state", key=key, run=st.session_state.get(f"rldk_part_{key}") or st.session_state["rldk_part"])
    if not state.get("rows") and not state.get("sketched"):
        _say_nothing_yet(state)
        return
    others = [(other, client.ask("state", key=other)) for other in settings["compared"]]
    others = [pair for pair in others if pair[1].get("rows")]
    axis = settings["axis"] if all(one.get("timed") for one in (state, *(other for _, other in others))) else "step"
    span = st.session_state.get(SPAN) if axis == settings["axis"] else None
    view = RunView(client, key, state, others, span, settings["smoothing"], settings["dark"], axis)
    st.session_state["rldk_part"] = view.run if len(state.get("runs") or ()) > 1 else None
    address.write(address.RUN_PAGE)
    mark_tab(view)
    draw_banner(view)
    draw_header(view, settings["view"])
    with st.container():
        if state.get("live"):
            offer_browser_alerts(view)
    toast_new_incidents(view)
    with st.container():  # an empty container keeps its place, so that what follows does not move
        _choose_run_in_file(view)
    with st.container():
        if axis != settings["axis"]:
            note("The curves are drawn by step: not every log that is shown has times.")
        if view.span is not None:
            ends = " to ".join(short_number(end, 6) for end in view.span)
            show_range(f"{view.range_name} {ends}, in full detail.", "Whole run", "rldk_whole", "fragment")
    VIEWS[settings["view"]](view)


def _choose_run_in_file(view: RunView) -> None:
    runs = dict(view.state.get("runs") or ())
    if len(runs) > 1:
        names = list(runs)
        place = names.index(view.run) if view.run in runs else 0
        label = f"This file contains {len(runs)} runs"
        st.selectbox(label, names, place, format_func=lambda name: runs[name], key=f"rldk_part_{view.key}")


def _say_nothing_yet(state: dict[str, Any]) -> None:
    """Why a run has nothing to show."""
    if state.get("problem"):
        message(f"This run cannot be shown. {state['problem']}")
    elif state.get("progress", 1.0) < 1.0:
        message("Reading …")
    elif state.get("skipped"):
        message(f"There is no event in this file yet. {state['skipped']}.")
    else:
        message("This run has not logged anything yet. Its first event appears here as soon as it is written.")


def _say_no_runs(folder: str, listing: dict[str, Any]) -> None:
    """Why there is no run, and what counts as one."""
    why = listing.get("problem") or "There is no run in this folder yet. One appears here as soon as it is started."
    show(piece("no_runs", why, folder), "empty")
