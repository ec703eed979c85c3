"""What the page says where there is nothing to draw: no run yet, nothing in it yet, or no way to read it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.dashboard.page.words import safe

__all__ = ["say", "say_no_runs", "say_nothing_yet"]


def say(sentence: str) -> None:
    """One sentence, in a box of its own."""
    st.html(f'<div class="rldk" data-rldk="say"><div class="note">{safe(sentence, 1200)}</div></div>')


def say_nothing_yet(state: dict[str, Any]) -> None:
    """Why a run has nothing to show."""
    problem = state.get("problem")
    if problem:
        say(f"This run cannot be shown. {problem}")
    elif state.get("progress", 1.0) < 1.0:
        say("Reading …")
    elif state.get("skipped"):
        say(f"No event in this file yet. {state['skipped']}.")
    else:
        say("This run has begun, and has not logged anything yet. Its first event appears here by itself.")


def say_no_runs(folder: str, listing: dict[str, Any]) -> None:
    """Why there is no run, and what would be one."""
    told = listing.get("problem") or "There is no run in this folder yet. One appears here by itself as soon as it begins."
    st.html(
        f'<div class="rldk" data-rldk="empty"><h1>No runs yet</h1><p>{safe(told)}</p>'
        f'<p class="soft">Looking in <code>{safe(folder, 300)}</code></p>'
        "<p class=soft>A run is a log that rldk writes (<code>NAME_events.jsonl</code>), or one that it can read: JSON lines, "
        "<code>trainer_state.json</code>, CSV, parquet, TensorBoard, console output. "
        "<code>rldk scan DIR</code> says why a file is not read.</p></div>"
    )
