"""Compared runs: those beside the run that is open, and those selected in the table, as `rldk compare` compares them."""

from __future__ import annotations

import time

import streamlit as st
from markupsafe import Markup

from rldk.core.text import counted, in_words, short_number
from rldk.dashboard.client import Client
from rldk.dashboard.page import address
from rldk.dashboard.page.html import note, piece, show, table
from rldk.dashboard.page.panels import RunView
from rldk.dashboard.page.run_rows import rows_of, short_names
from rldk.present.verdicts import MAIN_SCORES, verdict_words

__all__ = ["draw_others", "draw_selected"]

_ASK_SECONDS = 0.3


def draw_others(view: RunView) -> None:
    """The compared runs as a table, and the comparison of `rldk compare`."""
    _draw_table(view)
    runs = [[view.key, view.run], *([key, state.get("key_of_run")] for key, state in view.others)]
    found = view.client.ask("compare", runs=runs)
    with st.expander("Where they part, settings that differ, where each ended", expanded=True):
        if found.get("problem"):
            note(found["problem"])
        else:
            show(Markup(found["html"]), "comparison")  # made and escaped by present.comparison


def _draw_table(view: RunView) -> None:
    """Verdicts and scores side by side."""
    rows = []
    for key, state in [(view.key, view.state), *view.others]:
        incident = next(iter(state.get("incidents") or ()), None)
        cause = f"step {incident['step']:,}: {incident['title']}" if incident else state.get("reason", "")
        health = [short_number((state.get("scores") or {}).get(name)) for name in MAIN_SCORES]
        verdict, last = verdict_words(state.get("verdict", "no_data")), state.get("last_step")
        rows.append([str(state.get("run_id") or key), verdict, "–" if last is None else f"{last:,}", *health, str(cause)])
    headings = ["run", "verdict", "last step", *map(in_words, MAIN_SCORES), "first incident"]
    table("Comparison", headings, rows, numbers=(2, 3, 4, 5))


def draw_selected(client: Client) -> None:
    """Compare the selected runs with one of them."""
    selected = rows_of(client).of(st.session_state["rldk_selected"])
    address.write(address.TABLE_PAGE)
    if len(selected) < 2:
        note("Select two or more runs to compare them.")
        return
    names = dict(zip((row["id"] for row in selected), short_names(selected), strict=True))
    if st.session_state["rldk_base"] not in names:
        st.session_state["rldk_base"] = next(iter(names))
    base = st.selectbox("Compare with", list(names), format_func=names.__getitem__, key="rldk_base")
    ids = sorted(names, key=lambda one: one != base)
    place = st.empty()
    answer = client.ask("compare", runs=ids)
    while answer.get("pending"):
        place.progress(answer["done"] / max(1, answer["of"]), f"{answer['done']} of {counted(answer['of'], 'run')} judged")
        time.sleep(_ASK_SECONDS)
        answer = client.ask("compare", runs=ids)
    place.empty()
    if answer.get("problem"):
        note(str(answer["problem"]))
        return
    show(piece("compared", answer["groups"]) + Markup(answer["html"]), "comparison")  # made of escaped pieces in our own process
    if unknown := answer.get("unknown_settings"):
        note(f"The settings of {', '.join(map(str, unknown[:5]))} are not in the log or beside it.")
