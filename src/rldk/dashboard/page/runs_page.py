"""The page of all runs: the table with search, filter, tags and notes; below it the selected runs, drawn or compared."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st
from markupsafe import Markup

from rldk.core.text import clean, counted
from rldk.dashboard.client import Client
from rldk.dashboard.page import address
from rldk.dashboard.page.comparison import draw_selected
from rldk.dashboard.page.html import errors_as_messages, note, show
from rldk.dashboard.page.overlay_view import BEHIND, draw_overlay
from rldk.dashboard.page.run_rows import ORDERS, SHOWN, Row, RunRows, columns_of, rows_of, setting_column
from rldk.dashboard.page.sidebar import choose_axis, choose_refresh, draw_title, remarks
from rldk.present.html import text

__all__ = ["draw_runs_page"]

_DRAWN = "rldk_drawn_selection"  # the selection that the rest of the page was drawn for
_TABLE = "rldk_runs"
_SHOWN_IDS = "rldk_shown_ids"
_GENERATION = "rldk_table_generation"
_FIRST = "rldk_table_first_selection"
_MAX_SETTINGS = 8
_ROW_PIXELS, _MAX_PIXELS = 35, 460
_COLOURS = {"critical": "red", "warning": "orange", "healthy": "green", "no data": "gray", "not judged yet": "gray"}
_TABLE_PAUSE = 3.0
_MANY = 50


def draw_runs_page(client: Client, seconds: float, dark: bool) -> None:
    """Draw the table and what is selected in it; both are refreshed by themselves while runs are written."""
    found = rows_of(client)
    st.session_state[_DRAWN] = list(st.session_state["rldk_selected"])
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


def draw_table(client: Client) -> None:
    """The controls and the table; a change of the selection draws the whole page again."""
    found = rows_of(client)
    if (to_open := st.session_state.pop("rldk_to_open", None)) in found.by_id:
        open_run(found.by_id[to_open])
        st.rerun()
    if st.session_state[_DRAWN] != st.session_state["rldk_selected"]:
        st.rerun()
    pattern, order = _controls()
    shown = st.session_state["rldk_shown"]
    rows, problem = found.chosen(pattern, shown, order)
    if problem:
        note(problem)
    _caption(found, rows)
    if rows:
        _draw_rows(found, rows)
    else:
        note("No run matches. Clear the search or the filter." if found.rows else "There is no run in this folder yet.")
    _actions(client, found)
    address.write(address.TABLE_PAGE)


def _controls() -> tuple[str, str]:
    left, middle, right = st.columns([3, 3, 1.2], vertical_alignment="bottom")
    pattern = left.text_input(
        "Search", key="rldk_search", placeholder="Search: a regular expression", max_chars=300,
        help="In name, log, framework, cause, settings (`lr=1e-05`), tags and notes. `a|b` finds either, `^seed` the beginning.",
    )  # fmt: skip
    address.keep_known("rldk_shown", SHOWN)
    middle.pills("Show", SHOWN, selection_mode="multi", key="rldk_shown", help="Without a choice, all runs are shown.")
    if st.session_state["rldk_order"] not in ORDERS:
        st.session_state["rldk_order"] = "newest"
    place = list(ORDERS).index(st.session_state["rldk_order"])  # also its default: a busy browser may miss that it was set
    order = right.selectbox("Order", list(ORDERS), place, key="rldk_order", help="Or click the head of a column.")
    return pattern or "", order or "newest"


def _caption(found: RunRows, rows: list[Row]) -> None:
    selected = {row["id"] for row in found.of(st.session_state["rldk_selected"])}
    hidden = len(selected - {row["id"] for row in rows})
    parts = [counted(len(found.rows), "run") if len(rows) == len(found.rows) else f"{len(rows):,} of {len(found.rows):,} runs"]
    parts += [f"{sum(row['status'] == 'live' for row in rows):,} live"]
    if found.about.get("waiting"):
        parts.append(f"{found.about['waiting']:,} being judged")
    if selected:
        parts.append(f"{len(selected):,} selected" + (f", {hidden:,} of them not in the table below" if hidden else ""))
    show(Markup('<p class="soft">{}</p>').format(" · ".join(parts)), "count", runs=str(len(rows)))


def _draw_rows(found: RunRows, rows: list[Row]) -> None:
    ids = [row["id"] for row in rows]
    selected = set(st.session_state["rldk_selected"])
    wanted = [place for place, one in enumerate(ids) if one in selected]
    key = _table_key(ids)
    state = st.session_state.get(key)
    if state is not None and sorted(state["selection"]["rows"]) != wanted:  # selected by the address, or cleared
        st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
        key = _table_key(ids)
    st.session_state[_SHOWN_IDS] = ids
    first = st.session_state.get(_FIRST)
    if first is None or first[0] != key:  # what a table begins with must not change under the user's clicks
        first = st.session_state[_FIRST] = (key, wanted)
    settings = [setting_column(name) for name in found.settings]
    order = ["verdict", "run", "status", "changed", "steps", "reward", "KL", "curve", "cause", *settings[:_MAX_SETTINGS]]
    st.dataframe(
        columns_of(rows, found.settings), key=key, on_select=partial(_picked, key), selection_mode=["multi-row", "single-cell"],
        selection_default={"selection": {"rows": first[1]}},
        column_order=[*order, "tags", "note", "framework"], column_config=_column_config(found),
        hide_index=True, height=min(_MAX_PIXELS, _ROW_PIXELS * (len(rows) + 1) + 3), row_height=_ROW_PIXELS,
        placeholder="–",
    )  # fmt: skip


def _table_key(ids: list[str]) -> str:
    """The browser knows selected rows by their places: a table with other rows, or in another order, is another table."""
    return f"{_TABLE}_{st.session_state.get(_GENERATION, 0)}_{zlib.crc32('.'.join(ids).encode())}"


def _column_config(found: RunRows) -> dict[str, Any]:
    column = st.column_config
    made: dict[str, Any] = {
        "verdict": column.MultiselectColumn(
            "verdict", options=list(_COLOURS), color=list(_COLOURS.values()), width=110, help="The worst that was found."
        ),
        "run": column.TextColumn("run", width=230, pinned=True, help="Click a name to open the run."),
        "status": column.TextColumn("status", width=80, help="live: the log is being written; finished: the run has ended."),
        "changed": column.DatetimeColumn("age", format="distance", width=110, help="Since the last line of the log."),
        "steps": column.NumberColumn("steps", format="%d", width=70),
        "reward": column.NumberColumn("reward", format="%.4g", width=80, help="The last value."),
        "KL": column.NumberColumn("KL", format="%.4g", width=80, help="The last value."),
        "curve": column.LineChartColumn("reward", width=130, help="The reward over the whole run."),
        "cause": column.TextColumn("cause", width=230, help="The probable cause of the worst incident."),
        "framework": column.TextColumn("framework", width=100),
        "tags": column.ListColumn("tags", width=130),
        "note": column.TextColumn("note", width=200),
        "log": column.TextColumn("log", width=250),
    }
    for name in found.settings:
        values = [row["config"].get(name) for row in found.rows]
        label = clean(name, 60)
        is_number = all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in values)
        made[setting_column(name)] = column.NumberColumn(label, format="%.4g") if is_number else column.Column(label)
    return made


def _picked(key: str) -> None:
    """Take the selection of the table: rows that are not shown stay selected, and a click on a name opens that run."""
    ids = st.session_state.get(_SHOWN_IDS, [])
    state = st.session_state[key]["selection"]
    for place, column in state["cells"]:
        if column == "run" and 0 <= place < len(ids):
            st.session_state["rldk_to_open"] = ids[place]
    chosen = [ids[place] for place in state["rows"] if 0 <= place < len(ids)]
    before = [one for one in st.session_state["rldk_selected"] if one not in ids or one in chosen]
    st.session_state["rldk_selected"] = [*before, *(one for one in chosen if one not in before)]


def open_run(row: Row) -> None:
    """Show the page of a run from now on."""
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1  # so that the name can be clicked again
    st.session_state.update(rldk_run=row["key"], rldk_part=row["part"], rldk_table_page="", rldk_span=None)
    st.session_state.pop(f"rldk_part_{row['key']}", None)


def _actions(client: Client, found: RunRows) -> None:
    """What can be done with the selection."""
    selected = found.of(st.session_state["rldk_selected"])
    if not selected:
        st.caption("Select runs on the left edge of the table to draw them over each other; click a name to open that run.")
        return
    left, middle, right, _ = st.columns([1.2, 1.2, 1.4, 3], vertical_alignment="center")
    if left.button("Open", key="rldk_open", disabled=len(selected) != 1, width="stretch", help="Open the selected run"):
        open_run(selected[0])
        st.rerun()
    if middle.button("Clear selection", key="rldk_clear", width="stretch"):
        st.session_state["rldk_selected"] = []
        st.rerun()
    with right.popover("Tags and notes", width="stretch"):
        _annotate(client, found, selected)


def _annotate(client: Client, found: RunRows, selected: list[Row]) -> None:
    one = selected[0] if len(selected) == 1 else None
    shared = [tag for tag in selected[0]["tags"] if all(tag in row["tags"] for row in selected)]
    show(text(one["name"], 80) if one else text(counted(len(selected), "selected run"), 80), "annotated")
    own = hash((tuple(row["id"] for row in selected), tuple(shared), one["note"] if one else ""))
    tags = st.multiselect(
        "Tags", sorted({*found.tags, *shared}), shared, key=f"rldk_tags_{own}", accept_new_options=True, placeholder="Add a tag",
        help="A tag that you remove here is removed from all selected runs.",
    )  # fmt: skip
    written = st.text_area("Note", one["note"], key=f"rldk_note_{own}", max_chars=2000) if one else None
    if st.button("Save", key="rldk_save_notes", width="stretch"):
        ids = [row["id"] for row in selected]
        add = [tag for tag in tags if tag not in shared]
        answer = client.ask("annotate", runs=ids, add=add, remove=[tag for tag in shared if tag not in tags], note=written)
        if answer.get("problem"):
            note(str(answer["problem"]))
        else:
            st.rerun()
    st.caption("Kept in .rldk/notes.json of the folder.")
