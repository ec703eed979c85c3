"""Incidents as stories, anomalies as a table, and what the run itself wrote down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import draw_panels, marks_of, nothing_to_draw, panels_for
from rldk.dashboard.page.tables import table
from rldk.dashboard.page.words import count, named, number, safe

__all__ = ["draw_alerts", "incident_card", "toast_news", "worst_incident"]

_MOST_STORIES = 20
_SEEN = "rldk_seen_anomalies"

_PANELS_OF = {
    "kl_schedule": ("kl", "kl_coef"),
    "gradient_norms": ("gradients", "gradient_ratio"),
    "advantage_statistics": ("advantages", "advantage_std"),
    "policy": ("entropy", "clip", "ratio"),
    "reward": ("reward", "reward_spread"),
    "length": ("length", "truncated"),
    "value": ("value", "explained_variance", "value_loss"),
    "run": ("losses", "lr", "throughput", "memory_share"),
    "preference": ("margin", "accuracy"),
}


def draw_alerts(look: Look) -> None:
    """All that was raised: the latest incident first, with the curves that it is about."""
    incidents = look.state.get("incidents") or []
    if not incidents:
        judged = look.state.get("judged", 0)
        told = f"No incident in {count(judged)} judged events: {look.state.get('reason', '')}."
        nothing_to_draw(told if judged else "Nothing is judged yet.")
    for place, incident in list(enumerate(incidents, 1))[: -_MOST_STORIES - 1 : -1]:
        st.html(f'<div class="rldk">{incident_card(incident, place)}</div>')
    if len(incidents) > _MOST_STORIES:
        nothing_to_draw(f"And {len(incidents) - _MOST_STORIES} earlier incidents; the table below has their anomalies.")
    _draw_curves(look, incidents)
    _draw_tables(look)


def incident_card(incident: dict[str, Any], place: int) -> str:
    """One incident, with its number: what moved first, evidence, cause and rivals, what to do, where it was still good."""
    severity = "critical" if incident["severity"] == "critical" else "warning"
    evidence = "".join(f"<li>{safe(sentence)}</li>" for sentence in incident["evidence"])
    rivals = ", ".join(named(rival) for rival in incident["rivals"])
    good = incident["last_good_step"]
    last = f"Last good step: {count(good)}." if good is not None else "There is no good step in this log to go back to."
    over = incident.get("recovered_step")
    until = "" if over is None else f' <span class="healthy">recovered at step {count(over)}</span>'
    return (
        f'<div class="card {severity}" data-rldk="incident"><h2><span class="flag {severity}">{place}</span> '
        f'<span class="badge {severity}">{severity}</span> '
        f"step {count(incident['step'])}: {safe(incident['title'])}{until}</h2>"
        f'<p class="soft">Moved first: {safe(named(incident["first"]))}.</p><ul>{evidence}</ul>'
        f"<p><b>What to do.</b> {safe(incident['advice'], 1000)}</p>"
        f'<p class="soft">{f"It may also be: {safe(rivals)}. " if rivals else ""}{last}</p></div>'
    )


def worst_incident(incidents: Sequence[dict[str, Any]]) -> str:
    """The incident that a reader should know of before all others, and how many more there are; empty without any."""
    if not incidents:
        return ""
    place = next((place for place, one in enumerate(incidents) if one["severity"] == "critical"), len(incidents) - 1)
    more = len(incidents) - 1
    return incident_card(incidents[place], place + 1) + (f'<p class="soft">{more} more under Alerts.</p>' if more else "")


def _draw_curves(look: Look, incidents: list[dict[str, Any]]) -> None:
    """The curves that the latest incident speaks of."""
    if not incidents:
        return
    types = {anomaly["tracker"] for anomaly in look.state.get("anomalies", ()) if anomaly["step"] >= incidents[-1]["step"]}
    only = {"reward"}.union(*(_PANELS_OF.get(tracker, ()) for tracker in types))
    panels = panels_for(look.runs()[:1], span=look.span, marks=marks_of(incidents), only=only)
    draw_panels(look, panels, "alerts")


def _draw_tables(look: Look) -> None:
    anomalies = look.state.get("anomalies") or []
    if anomalies:
        st.subheader("Anomalies", anchor=False)
        rows = [
            [
                number(anomaly["step"]), anomaly["severity"], named(anomaly["type"]), anomaly["message"],
                number(anomaly["value"]), "stands" if anomaly["cleared_index"] is None else "cleared",
            ]
            for anomaly in reversed(anomalies[-200:])
        ]  # fmt: skip
        table(["step", "severity", "type", "what was seen", "value", "now"], rows, numbers=(0, 4))
    _draw_beside(look)
    written = look.client.ask("alerts", key=look.key)
    if written.get("problem"):
        nothing_to_draw(str(written["problem"]))
    alerts = written.get("alerts") or []
    if alerts:
        st.subheader("Alerts that the run wrote itself", anchor=False)
        names = list(dict.fromkeys(name for alert in alerts for name in alert))[:8]
        table(names, [[_cell(alert.get(name)) for name in names] for alert in reversed(alerts[-200:])])
    notes = look.state.get("notes") or []
    if notes:
        st.subheader("Notes in the log", anchor=False)
        table(["step", "note"], [[number(step), note] for step, note in reversed(notes)], numbers=(0,))


def _draw_beside(look: Look) -> None:
    """What stands beside the verdict and changes nothing of it: findings about the machine, and what is worth knowing."""
    machine = look.state.get("machine") or []
    if machine:
        st.subheader("Machine (not part of the verdict)", anchor=False)
        rows = [
            [number(one["step"]), named(one["type"]), one["message"], "stands" if one["cleared_index"] is None else "cleared"]
            for one in reversed(machine[-200:])
        ]
        table(["step", "type", "what was seen", "now"], rows, numbers=(0,))
    knowing = look.state.get("worth_knowing") or []
    if knowing:
        st.subheader("Worth knowing", anchor=False)
        nothing_to_draw(" ".join(str(note) for note in knowing[:20]))


def _cell(value: Any) -> str:
    return "" if value is None else number(value) if isinstance(value, (int, float)) else str(value)


def toast_news(look: Look) -> None:
    """Say aloud what has been raised since the last look; what was there when the page was opened is no news."""
    seen: dict[str, int] = st.session_state.setdefault(_SEEN, {})
    place = f"{look.key}|{look.run}"
    incidents = look.state.get("incidents") or []
    judged_all = look.state.get("judged", 0) >= look.state.get("rows", 0)
    if place in seen and judged_all:
        for incident in incidents[seen[place] :][-3:]:
            icon = ":material/error:" if incident["severity"] == "critical" else ":material/warning:"
            st.toast(f"Step {int(incident['step'])}: {named(str(incident['cause']))}", icon=icon)
    if judged_all:
        seen[place] = len(incidents)
