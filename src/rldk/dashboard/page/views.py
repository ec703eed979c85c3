"""What there is to see of a run, view by view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import draw_panels, marks_of, nothing_to_draw, overview_panels, panels_for
from rldk.dashboard.page.export import draw_export
from rldk.dashboard.page.header import draw_scores
from rldk.dashboard.page.samples import draw_samples
from rldk.dashboard.page.story import draw_alerts, worst_incident
from rldk.dashboard.page.tables import facts, table
from rldk.dashboard.page.words import count, named, number
from rldk.present.plots.standard import GROUPS

__all__ = ["VIEWS"]

_ANALYTICS = {
    "kl_schedule": ("KL and its coefficient", ("kl", "kl_coef")),
    "gradient_norms": ("Gradients", ("gradients", "gradient_ratio")),
    "advantage_statistics": ("Advantages", ("advantages", "advantage_std", "advantage_shape")),
    "length_bias": ("Length bias", ("length", "length_bias")),
}


def draw_overview(look: Look) -> None:
    """The verdict and the curves that matter most."""
    with st.container():
        draw_scores(look)
    with st.container():
        if look.others:
            _compare(look)
        told = worst_incident(look.state.get("incidents") or [])
        if told:
            st.html(f'<div class="rldk">{told}</div>')
    _draw(look, overview_panels(look), "overview", "This run has logged no number yet.")


def draw_curves(look: Look) -> None:
    """Every panel that the run has something for, group by group."""
    offered = ["All", *GROUPS, "Other"]
    chosen = st.segmented_control(
        "Group", offered, default="All", required=True, key="rldk_group", label_visibility="collapsed"
    )
    groups = None if chosen in (None, "All") else {chosen}
    marks = marks_of(look.state.get("incidents") or [])
    panels = panels_for(look.runs(), span=look.span, marks=marks, groups=groups, others=groups is None or "Other" in groups)
    _draw(look, panels, "curves", "This run has nothing of that group.")


def draw_analytics(look: Look) -> None:
    """What the trackers measure."""
    found = look.client.ask("analysis", key=look.key, run=look.state.get("key_of_run"))
    trackers = found.get("trackers") or {}
    marks = marks_of(look.state.get("incidents") or [])
    shown = False
    for name, (title, keys) in _ANALYTICS.items():
        measured = _measured(trackers.get(name))
        panels = panels_for(look.runs(), span=look.span, marks=marks, only=keys)
        if not panels and not measured:
            continue
        shown = True
        st.subheader(title, anchor=False)
        if measured:
            facts(measured)
        _draw(look, panels, f"analytics-{name}", "")
    if not shown:
        nothing_to_draw("This run has logged none of KL, gradients, advantages or lengths, so there is nothing to analyse.")
    inactive = found.get("inactive") or []
    if inactive:
        with st.expander(f"{len(inactive)} detectors are inactive: a metric is not logged"):
            table(["detector", "not logged"], [[named(one["detector"]), ", ".join(one["missing"])] for one in inactive])


def draw_checkpoints(look: Look) -> None:
    """What is known of the checkpoints."""
    found = look.client.ask("checkpoints", key=look.key)
    if not found.get("rows"):
        nothing_to_draw(
            found.get("problem")
            or "No checkpoint has been looked at. CheckpointMonitor and ComprehensivePPOMonitor write a table beside the log, "
            "and so does rldk checkpoints."
        )
        return
    rows = found["rows"]
    st.caption(f"{count(len(rows))} checkpoints, the latest first")
    numeric = [place for place in range(len(found["columns"])) if all(_is_number(row[place]) for row in rows)]
    table([named(name) for name in found["columns"]], [[_short(cell) for cell in row] for row in reversed(rows)], numbers=numeric)
    marks = marks_of(look.state.get("incidents") or [])
    _draw(look, panels_for(look.runs(), span=look.span, marks=marks, only=("reward", "losses")), "checkpoints", "")


def draw_machine(look: Look) -> None:
    """Throughput, memory and time."""
    panels = panels_for(look.runs(), span=look.span, groups={"Machine"})
    _draw(look, panels, "machine", "This run logged nothing of its machine (tokens_per_second, memory_usage, step_time, mfu …).")


def _draw(look: Look, panels: list[Any], place: str, otherwise: str) -> None:
    if panels:
        draw_panels(look, panels, place)
    elif otherwise:
        nothing_to_draw(otherwise)


def _compare(look: Look) -> None:
    """The runs that are compared, line by line."""
    scores = ("overall_health", "training_stability", "convergence_quality")
    rows = []
    for state, label in [(look.state, look.label), *((state, state.get("run_id") or key) for key, state in look.others)]:
        incident = next(iter(state.get("incidents") or ()), None)
        cause = f"step {count(incident['step'])}: {incident['title']}" if incident else state.get("reason", "")
        told = [number((state.get("scores") or {}).get(name)) for name in scores]
        rows.append([label, named(state.get("verdict", "no_data")), number(state.get("last_step")), *told, str(cause)])
    table(["run", "verdict", "last step", *map(named, scores), "first incident"], rows, numbers=(2, 3, 4, 5))


def _measured(given: Any, prefix: str = "") -> list[list[str]]:
    """The numbers of a tracker's summary, nested ones by their path."""
    rows: list[list[str]] = []
    for name, value in (given or {}).items() if isinstance(given, dict) else ():
        if isinstance(value, dict):
            rows += _measured(value, f"{prefix}{named(str(name))} · ")
        elif value is None or isinstance(value, (int, float)):
            rows.append([f"{prefix}{named(str(name))}", number(value)])
    told = {"step", "values", "updates"}  # the head of the page has them, and the tiles the scores, with what alarms take off
    return [row for row in rows if row[1] != "–" and "score" not in row[0] and row[0] not in told]


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _short(cell: str) -> str:
    return number(float(cell)) if cell and _is_number(cell) else cell


VIEWS: dict[str, Callable[[Look], None]] = {
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
