"""The views of a run: what each tab of the page shows."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from rldk.core.text import counted, short_number
from rldk.dashboard.page.alerts import draw_alerts
from rldk.dashboard.page.analytics import draw_analytics
from rldk.dashboard.page.checkpoints import draw_checkpoints
from rldk.dashboard.page.comparison import draw_others
from rldk.dashboard.page.export import draw_export
from rldk.dashboard.page.html import lines, note, piece, show
from rldk.dashboard.page.machine import draw_machine
from rldk.dashboard.page.panels import RunView, overview_panels, panels_for
from rldk.dashboard.page.plots import draw_plots
from rldk.dashboard.page.summary import scores, worst_incident_card
from rldk.present.plots.standard import GROUPS

__all__ = ["VIEWS"]

_SAMPLES_PER_PAGE = 10


def draw_overview(view: RunView) -> None:
    """Scores, the worst incident, and the most important curves."""
    with st.container():
        if tiles := scores(view):
            show(tiles)
    with st.container():
        if view.others:
            draw_others(view)
        if card := worst_incident_card(view):
            show(card)
    with st.container():
        if sentences := view.ask("outlook").get("sentences"):
            show(piece("outlook", sentences), "outlook")
    draw_plots(view, overview_panels(view), "overview", "This run has not logged a number yet.")


def draw_curves(view: RunView) -> None:
    """All panels of the run, by group."""
    chosen = st.segmented_control(
        "Group", ["All", *GROUPS, "Other"], default="All", required=True, key="rldk_group", label_visibility="collapsed"
    )
    groups = None if chosen in (None, "All") else {chosen}
    panels = panels_for(view, groups=groups, others=groups is None or "Other" in groups)
    draw_plots(view, panels, "curves", "This run has no metric of this group.")


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
