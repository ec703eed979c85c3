"""The whole page: the sidebar with the runs, the head, and the view that was chosen."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import streamlit as st

from rldk.core.text import clean
from rldk.dashboard.client import Client, ReaderEnded
from rldk.dashboard.page.context import Look
from rldk.dashboard.page.header import draw_header
from rldk.dashboard.page.story import toast_news
from rldk.dashboard.page.style import css
from rldk.dashboard.page.views import VIEWS
from rldk.dashboard.page.words import ago, safe, since_bytes
from rldk.dashboard.page.zoom import SPAN, make_component, watch_zoom

__all__ = ["draw_page", "reader_of"]

logger = logging.getLogger("rldk")

_MOST_COMPARED = 5
_FILES = "rldk_files"
_RUN = "rldk_run"
_COMPARED = "rldk_compared"
_REST = "rldk_rest"
_FIRST = 2
_STILL_SECONDS = 20.0
_STILL_PAUSE = 5.0


@st.cache_resource(show_spinner=False)
def reader_of(folder: str) -> Client:
    """The one reader of a folder, for all pages of this server."""
    return Client(folder)


def draw_page(client: Client, seconds: float) -> None:
    """Draw everything once; two parts of it then draw themselves again as time goes by."""
    dark = is_dark()
    st.html(css(dark))
    zoom = make_component()
    try:
        listing = client.ask("list")
    except ReaderEnded as error:
        _say(str(error))
        return
    files = {key: (name, size, age) for key, name, size, age in listing["files"]}
    st.session_state[_FILES] = set(files)
    follow = seconds > 0
    with st.sidebar:
        st.html(f'<div class="rldk"><h1>rldk</h1><p class="soft">{safe(Path(client.folder).name or client.folder, 80)}</p></div>')
        key, compared = _choose_runs(files)
        smoothing = st.slider("Smoothing", 0.0, 0.99, 0.0, 0.01, key="rldk_smoothing")
        if seconds > 0:
            follow = st.toggle("Follow", value=True, key="rldk_follow", help="Look for news all the time")
        st.button("Look again", key="rldk_again", width="stretch")
        for remark in _remarks(listing):
            st.caption(remark)
    moving = key is not None and files[key][2] < _STILL_SECONDS
    st.fragment(_watch_folder, run_every=1.0 if follow else None)(client, key, moving)
    if key is None:
        _draw_empty(client, listing)
        return
    view = st.segmented_control("View", list(VIEWS), default="Overview", key="rldk_view", label_visibility="collapsed")
    settings = {"key": key, "compared": compared, "smoothing": smoothing, "dark": dark}
    settings |= {"view": view or "Overview", "follow": follow}
    pause = seconds if moving else max(seconds, _STILL_PAUSE)  # a browser takes its time for each plot: not for nothing
    st.fragment(_draw_run, run_every=pause if follow else None)(client, zoom, settings)


def is_dark() -> bool:
    """Whether the browser shows the page on dark paper."""
    theme = getattr(st.context, "theme", None)
    return getattr(theme, "type", None) == "dark"


def _choose_runs(files: dict[str, tuple[str, int, float]]) -> tuple[str | None, list[str]]:
    if not files:
        return None, []
    keys, labels = list(files), _labels(files)
    chosen = st.session_state.get(_RUN) or st.query_params.get("run")
    key = chosen if chosen in files else keys[0]
    own = f"rldk_pick_{hash(tuple(keys))}"  # Streamlit forgets the choice of a picker whose options change: ours is kept apart

    def picked() -> None:
        st.session_state[_RUN] = st.session_state[own]
        st.session_state[SPAN] = None

    title = f"Run ({len(files)})"
    st.selectbox(title, keys, keys.index(key), format_func=labels.__getitem__, key=own, on_change=picked)
    st.session_state[_RUN] = st.query_params["run"] = key
    st.caption(f"{since_bytes(files[key][1])}, changed {ago(files[key][2])}")
    return key, _choose_compared([other for other in keys if other != key], labels)


def _choose_compared(others: list[str], labels: dict[str, str]) -> list[str]:
    compared = [other for other in st.session_state.get(_COMPARED, ()) if other in others][:_MOST_COMPARED]
    own = f"rldk_more_{hash(tuple(others))}"

    def picked() -> None:
        st.session_state[_COMPARED] = list(st.session_state[own])

    st.multiselect(
        "Compare with", others, compared, format_func=labels.__getitem__, key=own, on_change=picked,
        max_selections=_MOST_COMPARED, placeholder="none", disabled=not others,
    )  # fmt: skip
    return compared


def _labels(files: dict[str, tuple[str, int, float]]) -> dict[str, str]:
    """What the picker calls the runs. Streamlit knows an option by its label: each must be one of its own, and stay."""
    taken: set[str] = set()
    labels = {}
    for key in sorted(files):
        label, number = clean(files[key][0], 80), 2
        while label in taken:
            label, number = f"{clean(key, 80)} ({number})", number + 1
        labels[key] = label
        taken.add(label)
    return labels


def _forget_span() -> None:
    st.session_state[SPAN] = None


def _remarks(listing: dict[str, Any]) -> list[str]:
    said = []
    if listing["left_out"]:
        said.append(f"{listing['left_out']} more files are not listed.")
    if listing["led_out"]:
        said.append(f"{listing['led_out']} links that lead out of the folder are not followed.")
    return said


def _watch_folder(client: Client, shown: str | None, moving: bool) -> None:
    """Draw the page anew when a run has come or gone, when the one that is shown moves again or no more, or not all is drawn."""
    try:
        files = {key: age for key, _, _, age in client.ask("list")["files"]}
    except ReaderEnded:
        return
    moves = shown is not None and files.get(shown, _STILL_SECONDS) < _STILL_SECONDS
    rest = st.session_state[_REST] = st.session_state.get(_REST, 0) - 1
    if rest == 0 or set(files) != st.session_state.get(_FILES) or moves != moving:
        st.rerun()


def _draw_run(client: Client, zoom: Any, settings: dict[str, Any]) -> None:
    """The head and the view, as the run stands now; the one guard of the page."""
    try:
        _draw_look(client, zoom, settings)
    except ReaderEnded as error:
        _say(str(error))
    except Exception as error:
        if type(error).__module__.startswith("streamlit"):  # how Streamlit itself begins anew
            raise
        logger.exception("The dashboard could not draw %s", settings["key"])
        _say(f"This view cannot be drawn ({type(error).__name__}). The terminal of the dashboard has the details.")


def _draw_look(client: Client, zoom: Any, settings: dict[str, Any]) -> None:
    key = settings["key"]
    watch_zoom(zoom, "rldk_zoom")
    state = client.ask("state", key=key, run=st.session_state.get(f"rldk_part_{key}"))
    if not state.get("rows") and not state.get("sketched"):
        _draw_nothing(state)
        return
    others = [(other, client.ask("state", key=other)) for other in settings["compared"]]
    look = Look(
        client, key, state.get("key_of_run"), state, [pair for pair in others if pair[1].get("rows")],
        st.session_state.get(SPAN), settings["smoothing"], settings["dark"], _first(settings),
    )  # fmt: skip
    draw_header(look)
    toast_news(look)
    with st.container():  # each part keeps its place, whether it has something to say or not: what comes after stays put
        _choose_part(key, state)
    with st.container():
        _choose_range(look)
    VIEWS[settings["view"]](look)


def _first(settings: dict[str, Any]) -> int | None:
    """How many panels the first look at a page has, if another look follows by itself."""
    if st.session_state.get("rldk_looked") or not settings["follow"]:
        return None
    st.session_state["rldk_looked"] = True
    st.session_state[_REST] = 2  # seconds, in which the browser has the first picture drawn
    return _FIRST


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
    left.html(f'<div class="rldk soft" data-rldk="range">Steps {low:.6g} to {high:.6g}, in full detail.</div>')
    if right.button("Whole run", key="rldk_whole", width="stretch"):
        _forget_span()
        st.rerun(scope="fragment")


def _draw_nothing(state: dict[str, Any]) -> None:
    problem = state.get("problem")
    if problem:
        _say(f"This run cannot be shown. {problem}")
    elif state.get("progress", 1.0) < 1.0:
        _say("Reading …")
    elif state.get("skipped"):
        _say(f"No event in this file yet. {state['skipped']}.")
    else:
        _say("This run has begun, and has not logged anything yet. Its first event appears here by itself.")


def _draw_empty(client: Client, listing: dict[str, Any]) -> None:
    told = listing.get("problem") or "There is no run in this folder yet. One appears here by itself as soon as it begins."
    st.html(
        f'<div class="rldk" data-rldk="empty"><h1>No runs yet</h1><p>{safe(told)}</p>'
        f'<p class="soft">Looking in <code>{safe(client.folder, 300)}</code></p>'
        "<p class=soft>A run is a log that rldk writes (<code>NAME_events.jsonl</code>), or one that it can read: JSON lines, "
        "<code>trainer_state.json</code>, CSV, parquet, TensorBoard, console output. "
        "<code>rldk scan DIR</code> says why a file is not read.</p></div>"
    )


def _say(sentence: str) -> None:
    st.html(f'<div class="rldk" data-rldk="say"><div class="note">{safe(sentence, 1200)}</div></div>')
