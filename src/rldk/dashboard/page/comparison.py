"""The compared runs: verdicts side by side, where they part, what differs in their settings, and where each ended."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from rldk.core.text import in_words, short_number
from rldk.dashboard.page.html import note, show, table
from rldk.dashboard.page.panels import RunView
from rldk.present.verdicts import MAIN_SCORES, verdict_words

__all__ = ["draw_comparison"]


def draw_comparison(view: RunView) -> None:
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
