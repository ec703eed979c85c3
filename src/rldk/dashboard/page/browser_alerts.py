"""The browser's own notifications: off until the user presses a button, and one for each incident."""

from __future__ import annotations

from typing import Any

import msgspec
import streamlit as st

from rldk.core.text import clean, sentence
from rldk.dashboard.page.panels import RunView
from rldk.present.html import asset

__all__ = ["browser_alerts", "offer_browser_alerts"]

_encode = msgspec.json.Encoder().encode


def offer_browser_alerts(view: RunView) -> None:
    """A button with which the user has the browser announce critical incidents of live runs, each of them once."""
    script = asset("rldk.dashboard.page", "browser_alerts.js")
    component = st.components.v2.component("rldk_browser_alerts", js=script, isolate_styles=False)
    component(key="rldk_browser_alerts", data=_encode(browser_alerts(view)))


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
