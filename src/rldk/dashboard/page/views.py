"""The views of a run: what each tab of the page shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from rldk.core.text import counted, in_words, short_number
from rldk.dashboard.page.alerts import draw_alerts
from rldk.dashboard.page.export import draw_export
from rldk.dashboard.page.html import facts, lines, note, piece, show, table
from rldk.dashboard.page.panels import RunView, overview_panels, panels_for
from rldk.dashboard.page.plots import draw_plots
from rldk.dashboard.page.summary import scores, worst_incident_card
from rldk.present.plots.standard import GROUPS
from rldk.present.verdicts import MAIN_SCORES, verdict_words

__all__ = ["VIEWS"]

_ANALYTICS = {
    "kl_schedule": ("KL and its coefficient", ("kl", "kl_coef")),
    "gradient_norms": ("Gradients", ("gradients", "gradient_ratio")),
    "advantage_statistics": ("Advantages", ("advantages", "advantage_std", "advantage_shape")),
    "length_bias": ("Length bias", ("length", "length_bias")),
}
_SHOWN_ELSEWHERE = frozenset({"step", "values", "updates"})  # the head of the page has them, and the tiles have the scores
_SAMPLES_PER_PAGE = 10


def draw_overview(view: RunView) -> None:
    """Scores, the worst incident, and the most important curves."""
    with st.container():
        if tiles := scores(view):
            show(tiles)
    with st.container():
        if view.others:
            _draw_comparison(view)
        if card := worst_incident_card(view):
            show(card)
    draw_plots(view, overview_panels(view), "overview", "This run has not logged a number yet.")


def _draw_comparison(view: RunView) -> None:
    """The compared runs as a table."""
    rows = []
    for key, state in [(view.key, view.state), *view.others]:
        incident = next(iter(state.get("incidents") or ()), None)
        cause = f"step {incident['step']:,}: {incident['title']}" if incident else state.get("reason", "")
        health = [short_number((state.get("scores") or {}).get(name)) for name in MAIN_SCORES]
        verdict, last = verdict_words(state.get("verdict", "no_data")), state.get("last_step")
        rows.append([str(state.get("run_id") or key), verdict, "–" if last is None else f"{last:,}", *health, str(cause)])
    headings = ["run", "verdict", "last step", *map(in_words, MAIN_SCORES), "first incident"]
    table("Comparison", headings, rows, numbers=(2, 3, 4, 5))


def draw_curves(view: RunView) -> None:
    """All panels of the run, by group."""
    chosen = st.segmented_control(
        "Group", ["All", *GROUPS, "Other"], default="All", required=True, key="rldk_group", label_visibility="collapsed"
    )
    groups = None if chosen in (None, "All") else {chosen}
    panels = panels_for(view, groups=groups, others=groups is None or "Other" in groups)
    draw_plots(view, panels, "curves", "This run has no metric of this group.")


def draw_analytics(view: RunView) -> None:
    """What the trackers measured, and which detectors are inactive."""
    found = view.ask("analysis")
    trackers = found.get("trackers") or {}
    shown = False
    for name, (title, keys) in _ANALYTICS.items():
        measured, panels = _measured(trackers.get(name)), panels_for(view, only=keys)
        if panels or measured:
            shown = True
            st.subheader(title, anchor=False)
            if measured:
                facts(measured)
            draw_plots(view, panels, f"analytics-{name}")
    if not shown:
        note("There is nothing to analyse: this run logs neither KL nor gradients, advantages or lengths.")
    inactive = found.get("inactive") or []
    if inactive:
        with st.expander(f"{counted(len(inactive), 'detector')} inactive: metrics are not logged"):
            rows = [[in_words(one["detector"]), ", ".join(one["missing"])] for one in inactive]
            table("Inactive detectors", ["detector", "not logged"], rows)


def _measured(given: Any, prefix: str = "") -> list[list[str]]:
    """The numbers of a tracker's summary, nested ones by their path."""
    rows: list[list[str]] = []
    for name, value in (given or {}).items() if isinstance(given, dict) else ():
        label = f"{prefix}{in_words(str(name))}"
        if isinstance(value, dict):
            rows += _measured(value, f"{label} · ")
        elif isinstance(value, (int, float)) and value == value and "score" not in label and label not in _SHOWN_ELSEWHERE:
            rows.append([label, ("yes" if value else "no") if isinstance(value, bool) else short_number(value)])
    return rows


def draw_checkpoints(view: RunView) -> None:
    """The table of checkpoints beside the log."""
    found = view.client.ask("checkpoints", key=view.key)
    rows = found.get("rows")
    if not rows:
        note(
            found.get("problem")
            or "No checkpoint has been checked. CheckpointMonitor, ComprehensivePPOMonitor and `rldk checkpoints` write a table "
            "of them beside the log."
        )
        return
    st.caption(f"{counted(len(rows), 'checkpoint')}, the latest first")
    numeric = [place for place in range(len(found["columns"])) if all(_is_number(row[place]) for row in rows)]
    shown = [[short_number(float(cell)) if cell and _is_number(cell) else cell for cell in row] for row in reversed(rows)]
    table("Checkpoints", [in_words(name) for name in found["columns"]], shown, numbers=numeric)
    draw_plots(view, panels_for(view, only=("reward", "losses")), "checkpoints")


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def draw_machine(view: RunView) -> None:
    """Throughput, memory and time."""
    otherwise = "This run logs nothing about its machine (tokens_per_second, memory_usage, step_time, mfu …)."
    draw_plots(view, panels_for(view, groups={"Machine"}), "machine", otherwise)


def draw_samples(view: RunView) -> None:
    """Recorded prompts and answers, the latest first, with a search."""
    if not view.state.get("samples"):
        note("No sample was recorded. An event may hold them beside its metrics: samples: [{prompt, completion, reward}, …]")
        return
    left, right = st.columns([3, 1])
    words = left.text_input("Search prompts and answers", key="rldk_words", placeholder="Search prompts and answers")
    page = int(right.number_input("Page", min_value=1, value=1, step=1, key="rldk_page"))
    start = (page - 1) * _SAMPLES_PER_PAGE
    found = view.ask("samples", start=start, count=_SAMPLES_PER_PAGE, words=words or "")
    total = int(found.get("total", 0))
    st.caption(f"{counted(total, 'sample')}, the latest first; page {page} of {max(1, -(-total // _SAMPLES_PER_PAGE))}")
    for sample in found.get("samples", ()):
        reward = "" if sample["reward"] is None else short_number(sample["reward"])
        show(piece("sample", sample, lines(sample["prompt"]), lines(sample["answer"]), reward))


VIEWS: dict[str, Callable[[RunView], None]] = {
    "Overview": draw_overview,
    "Curves": draw_curves,
    "Analytics": draw_analytics,
    "Alerts": draw_alerts,
    "Checkpoints": draw_checkpoints,
    "Machine": draw_machine,
    "Samples": draw_samples,
    "Export": draw_export,
}
"""The views by name, in the order in which they are offered."""
