"""The selected runs compared, as `rldk compare` does: verdicts, where they part, settings that differ, where each ended."""

from __future__ import annotations

import time

import streamlit as st
from markupsafe import Markup

from rldk.core.text import counted
from rldk.dashboard.client import Client
from rldk.dashboard.page import address
from rldk.dashboard.page.html import note, piece, show
from rldk.dashboard.page.run_rows import rows_of, short_names

__all__ = ["draw_comparison"]

_ASK_SECONDS = 0.3
_EACH = ""


def draw_comparison(client: Client, dark: bool) -> None:
    """Compare the selected runs with one of them."""
    by_id = rows_of(client).by_id
    selected = [by_id[one] for one in st.session_state["rldk_selected"] if one in by_id]
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
