"""The view of the machine: findings first, then every measurement with its unit and its meaning, and the curves."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.core.catalog import entry_of
from rldk.core.text import in_words, short_number
from rldk.dashboard.page.html import note, piece, show, table
from rldk.dashboard.page.panels import RunView, panels_for
from rldk.dashboard.page.plots import draw_plots
from rldk.detectors.table import BY_TYPE
from rldk.present.incidents import panels_showing
from rldk.present.plots.standard import STANDARD

__all__ = ["draw_machine", "level_rows"]

_METRICS = tuple(name for spec in STANDARD if spec.group == "Machine" for curve in spec.curves for name in curve.metrics.split())


def draw_machine(view: RunView) -> None:
    """Throughput, memory and time: what is abnormal now, what was, and how each measurement stands."""
    findings = view.state.get("machine") or []
    standing = [one for one in findings if one["cleared_index"] is None]
    panels = panels_for(view, groups={"Machine"})
    if standing:
        show(piece("findings", standing[::-1][:5]), "findings")
    elif panels:
        note("No anomaly is active. Findings about the machine do not change the verdict.")
    guilty = panels_showing(one["type"] for one in standing)
    panels.sort(key=lambda panel: guilty.index(panel.key) if panel.key in guilty else len(guilty))
    names = [name for name in _METRICS if name in view.state.get("drawn", ())]
    if names:
        rows = level_rows(view.ask("levels", names=names).get("levels") or {}, standing)
        headings = ["measured", "now", "median", "5 to 95 %", "unit", "what it is", "state"]
        width = len(headings) if standing else len(headings) - 1
        table("Machine", headings[:width], [row[:width] for row in rows], numbers=(1, 2, 3))
    otherwise = "This run logs nothing about its machine (tokens_per_second, memory_usage, step_time, mfu …)."
    draw_plots(view, panels, "machine", otherwise)
    if over := [one for one in findings if one["cleared_index"] is not None]:
        st.subheader("Findings that are over", anchor=False)
        rows = [[f"{one['step']:,}", in_words(one["type"]), one["message"]] for one in reversed(over[-50:])]
        table("Findings that are over", ["step", "finding", "what was seen"], rows, numbers=(0,))


def level_rows(levels: dict[str, list[float]], standing: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each measurement: now, its median, the range of nine in ten; those with a finding first."""
    since: dict[str, int] = {}
    for one in standing:
        for choices in BY_TYPE[one["type"]].needs if one["type"] in BY_TYPE else ():
            since |= dict.fromkeys(choices, one["step"])
    rows = []
    for name, (last, usual, low, high) in levels.items():
        entry = entry_of(name)
        unit = "" if entry is None else {"fraction": "share of 1"}.get(entry.unit, entry.unit)
        state = f"abnormal since step {since[name]:,}" if name in since else ""
        bounds = f"{short_number(low)} to {short_number(high)}"
        meaning = "" if entry is None else entry.meaning
        rows.append([name, short_number(last), short_number(usual), bounds, unit, meaning, state])
    return sorted(rows, key=lambda row: not row[-1])
