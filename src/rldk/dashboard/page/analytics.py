"""The view of the trackers: what is abnormal first, and every number with its unit and its meaning."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.core.anomaly import SEVERITIES
from rldk.core.text import counted, in_words, short_number
from rldk.dashboard.page.html import note, piece, show, table
from rldk.dashboard.page.panels import RunView, panels_for
from rldk.dashboard.page.plots import draw_plots
from rldk.present.tracker_words import MEASURES, Measure, tone_of_measure

__all__ = ["draw_analytics", "measured", "most_severe"]

_SECTIONS = {
    "kl_schedule": ("KL and its coefficient", "kl_schedule", ("kl", "kl_coef")),
    "gradient_norms": ("Gradients", "gradient_norms", ("gradients", "gradient_ratio")),
    "advantage_statistics": ("Advantages", "advantage_statistics", ("advantages", "advantage_std", "advantage_shape")),
    "length_bias": ("Length bias", "length", ("length", "length_bias")),
}
"""Of each tracker the title, the family of its detectors, and its panels."""

_SHOWN_ELSEWHERE = frozenset({"step", "values", "updates"})  # the head of the page has them, and the tiles have the scores
_ABNORMAL = ("critical", "warning")
_UNKNOWN = Measure("")


def draw_analytics(view: RunView) -> None:
    """What the trackers measured, those with something abnormal first, and which detectors are inactive."""
    found = view.ask("analysis")
    trackers = found.get("trackers") or {}
    shown = False
    for name in sorted(_SECTIONS, key=lambda name: -_urgency(_standing(view, name))):
        title, _, keys = _SECTIONS[name]
        rows, panels = measured(trackers.get(name)), panels_for(view, only=keys)
        if panels or rows:
            shown = True
            _draw_head(title, _standing(view, name))
            if rows:
                show(piece("measures", rows))
            draw_plots(view, panels, f"analytics-{name}")
    if not shown:
        note("There is nothing to analyse: this run logs neither KL nor gradients, advantages or lengths.")
    inactive = found.get("inactive") or []
    if inactive:
        with st.expander(f"{counted(len(inactive), 'detector')} inactive: metrics are not logged"):
            lacking = [[in_words(one["detector"]), ", ".join(one["missing"])] for one in inactive]
            table("Inactive detectors", ["detector", "not logged"], lacking)


def _standing(view: RunView, name: str) -> list[dict[str, Any]]:
    """The anomalies of a tracker's family that stand now."""
    family = _SECTIONS[name][1]
    anomalies = view.state.get("anomalies") or []
    return [one for one in anomalies if one["tracker"] == family and one["cleared_index"] is None]


def _urgency(anomalies: list[dict[str, Any]]) -> int:
    return max((1 + SEVERITIES.index(one["severity"]) for one in anomalies), default=0)


def _draw_head(title: str, standing: list[dict[str, Any]]) -> None:
    st.subheader(title, anchor=False)
    if standing:
        show(piece("findings", most_severe(standing)[:5]))
    else:
        note("No anomaly is active.")


def most_severe(anomalies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each type the most severe anomaly, critical ones first."""
    by_type: dict[str, dict[str, Any]] = {}
    for one in sorted(anomalies, key=lambda one: SEVERITIES.index(one["severity"])):
        by_type[one["type"]] = one
    return sorted(by_type.values(), key=lambda one: -SEVERITIES.index(one["severity"]))


def measured(given: dict[str, Any] | None) -> list[tuple[str, str, str, str, str]]:
    """The numbers of a tracker's summary: name, value, unit, meaning and tone; what is abnormal first."""
    rows = []
    for name, value in (given or {}).items():
        if not isinstance(value, (int, float)) or value != value or "score" in name or name in _SHOWN_ELSEWHERE:
            continue
        known = MEASURES.get(name, _UNKNOWN)
        words = ("yes" if value else "no") if isinstance(value, bool) else short_number(value)
        rows.append((in_words(name), words, known.unit, known.meaning, tone_of_measure(name, value)))
    return sorted(rows, key=lambda row: _ABNORMAL.index(row[4]) if row[4] in _ABNORMAL else len(_ABNORMAL))
