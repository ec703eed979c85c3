"""How an incident is announced: a banner over the run, the title and icon of the browser's tab, and notifications."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import streamlit as st
from markupsafe import Markup

from rldk.core.text import clean, in_words, sentence
from rldk.dashboard.page.html import piece, show
from rldk.dashboard.page.panels import RunView
from rldk.judge.incidents.incident import Incident
from rldk.present.html import asset
from rldk.present.incidents import subject, worst_incident
from rldk.present.palette import LIGHT
from rldk.present.verdicts import verdict_words

__all__ = [
    "banner", "browser_alerts", "draw_banner", "icon_of", "mark_tab", "offer_browser_alerts", "standing_of", "title_of",
    "toast_new_incidents",
]  # fmt: skip

_COLOURS = {"critical": LIGHT.critical, "warning": LIGHT.warning, "healthy": LIGHT.good, "recovered": LIGHT.good}
_EXCLAMATION, _TICK = "M8 3.5v5.5M8 11.6v.9", "M4.5 8.3l2.4 2.4 4.6-5"
_SIGNS = {"critical": _EXCLAMATION, "warning": _EXCLAMATION, "healthy": _TICK, "recovered": _TICK}
_SEEN = "rldk_seen_incidents"
_MAX_AGO = 30 * 86400.0  # a clock that says more is wrong


def draw_banner(view: RunView) -> None:
    """The banner in its place; the place is kept while there is none, so that what follows does not move."""
    headline, details = banner(view)
    with st.container():
        if headline:
            show(headline, "banner")
    with st.container():
        if details:
            show(details, "banner-details")


def banner(view: RunView) -> tuple[Markup, Markup]:
    """The headline, which stays in sight, and what to do; both empty for a run without incidents that call for it."""
    alerts = view.alerts
    worst = worst_incident(alerts)
    if worst is not None:
        headline = piece("banner", worst, subject(worst), _since(view, worst), len(alerts) - 1)
        return headline, piece("banner_details", worst)
    over = [one for one in view.incidents if one.recovered_step is not None]
    if view.state.get("state") == "recovered" and over:
        return piece("recovered_banner", max(over, key=lambda one: one.recovered_step or 0)), Markup("")
    if accepted := worst_incident([one for one in view.incidents if view.acknowledgement(one) is not None]):
        return piece("acknowledged_banner", accepted, view.acknowledgement(accepted)), Markup("")
    return Markup(""), Markup("")


def _since(view: RunView, incident: Incident) -> float | None:
    """Seconds since an incident was raised, for a run that is being written and logs times."""
    raised = (view.state.get("raised_at") or {}).get(str(incident.index))
    since = None if raised is None or not view.state.get("live") else time.time() - raised
    return since if since is not None and 0 <= since < _MAX_AGO else None


def standing_of(view: RunView) -> str:
    """How the run stands for someone who has to act: what was acknowledged does not count."""
    worst = worst_incident(view.alerts)
    if worst is not None:
        return worst.severity
    state = str(view.state.get("state", "no_data"))
    return "healthy" if state in ("critical", "warning") else state  # all of it is acknowledged


def title_of(view: RunView) -> str:
    """The title of the tab: what is wrong comes first, since a narrow tab shows little else."""
    standing, name = standing_of(view), clean(view.label, 60)
    return f"{name} · rldk" if standing in ("healthy", "no_data") else f"{sentence(verdict_words(standing))}: {name} · rldk"


def icon_of(standing: str) -> str:
    """The icon of the tab as an SVG: a disc in the colour of the verdict, with a sign for those who do not see colours."""
    sign = _SIGNS.get(standing)
    drawn = f'<path d="{sign}" fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round"/>' if sign else ""
    disc = f'<circle cx="8" cy="8" r="8" fill="{_COLOURS.get(standing, LIGHT.soft)}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{disc}{drawn}</svg>'


def mark_tab(view: RunView) -> None:
    """Title and icon of the browser's tab."""
    st.set_page_config(page_title=title_of(view), page_icon=icon_of(standing_of(view)))


def toast_new_incidents(view: RunView) -> None:
    """Announce the incidents that were raised since the last refresh, but not those from before the page was opened."""
    seen: dict[str, int] = st.session_state.setdefault(_SEEN, {})
    place = f"{view.key}|{view.run}"
    if view.state.get("judged", 0) < view.state.get("rows", 0):
        return
    incidents = view.incidents
    for incident in incidents[seen.get(place, len(incidents)) :][-3:]:
        icon = ":material/error:" if incident.severity == "critical" else ":material/warning:"
        st.toast(f"Step {incident.step}: {sentence(clean(in_words(incident.cause)))}", icon=icon)
    seen[place] = len(incidents)


def offer_browser_alerts(view: RunView) -> None:
    """A button with which the user has the browser announce critical incidents of live runs, each of them once."""
    script = asset("rldk.dashboard.page", "browser_alerts.js")
    component = st.components.v2.component("rldk_browser_alerts", js=script, isolate_styles=False)
    component(key="rldk_browser_alerts", data=msgspec.json.encode(browser_alerts(view)))


def browser_alerts(view: RunView) -> dict[str, Any]:
    """What the browser may announce: the critical incidents that stand, each by an id that does not change."""
    live = bool(view.state.get("live"))
    place = f"{view.client.folder}|{view.key}|{view.run}"
    critical = [one for one in view.alerts if live and one.severity == "critical"]
    return {
        "live": live,
        "incidents": [
            {
                "id": f"{place}|{one.index}",
                "title": f"{clean(view.label, 60)}: {sentence(clean(one.title, 120))}",
                "body": f"Critical since step {one.step}. {clean(one.advice, 300)}",
            }
            for one in critical
        ],
    }
