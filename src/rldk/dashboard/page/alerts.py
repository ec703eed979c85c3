"""The view of alerts: incidents as cards, anomalies as a table, and what the run itself wrote down."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.core.text import in_words, short_number
from rldk.dashboard.page.html import note, show, table
from rldk.dashboard.page.panels import RunView, evidence_panels
from rldk.dashboard.page.plots import draw_plots
from rldk.present.html import part

__all__ = ["draw_alerts"]

_MAX_CARDS = 20
_MAX_ROWS = 200


def draw_alerts(view: RunView) -> None:
    """All that was raised: what stands first, then the latest, each with the curves that show it, as in the report."""
    incidents = view.incidents
    if not incidents:
        judged = view.state.get("judged", 0)
        note(f"No incident in {judged:,} judged events: {view.state.get('reason', '')}." if judged else "Not judged yet.")
    standing = {one.index for one in view.alerts}
    latest = list(enumerate(incidents, 1))[: -_MAX_CARDS - 1 : -1]
    order = sorted(latest, key=lambda pair: (pair[1].index not in standing, pair[1].severity != "critical", -pair[1].index))
    for place, (number, incident) in enumerate(order):
        show(part("incident_card", incident, number, view.story(incident), "", view.acknowledgement(incident)))
        if place == 0 or st.toggle(f"Curves of incident {number}", key=f"rldk_curves_{view.key}_{number}"):
            draw_plots(view, evidence_panels(view, incident, number), f"alerts-{number}")
    if len(incidents) > _MAX_CARDS:
        note(f"{len(incidents) - _MAX_CARDS} earlier incidents are not shown; the table below has their anomalies.")
    _draw_tables(view)


def _draw_tables(view: RunView) -> None:
    _draw_anomalies("Anomalies", view.state.get("anomalies") or [])
    _draw_anomalies("Machine (not part of the verdict)", view.state.get("machine") or [])
    if notes := view.state.get("worth_knowing"):
        st.subheader("Worth knowing", anchor=False)
        note(" ".join(str(one) for one in notes[:20]))
    written = view.client.ask("alerts", key=view.key)
    if written.get("problem"):
        note(str(written["problem"]))
    if alerts := written.get("alerts"):
        st.subheader("Alerts written by the run itself", anchor=False)
        names = list(dict.fromkeys(name for alert in alerts for name in alert))[:8]
        table("Alerts", names, [[_cell(alert.get(name)) for name in names] for alert in reversed(alerts[-_MAX_ROWS:])])
    if logged := view.state.get("notes"):
        st.subheader("Notes in the log", anchor=False)
        table("Notes", ["step", "note"], [[f"{step:,}", text] for step, text in reversed(logged)], numbers=(0,))


def _draw_anomalies(title: str, anomalies: list[dict[str, Any]]) -> None:
    if not anomalies:
        return
    st.subheader(title, anchor=False)
    rows = [
        [
            f"{anomaly['step']:,}", anomaly["severity"], in_words(anomaly["type"]), anomaly["message"],
            short_number(anomaly["value"]), "active" if anomaly["cleared_index"] is None else "cleared",
        ]
        for anomaly in reversed(anomalies[-_MAX_ROWS:])
    ]  # fmt: skip
    table(title, ["step", "severity", "type", "what was seen", "value", "now"], rows, numbers=(0, 4))


def _cell(value: Any) -> str:
    return "" if value is None else short_number(value) if isinstance(value, (int, float)) else str(value)
