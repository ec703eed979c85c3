"""The summary of a run: its head, its scores and its worst incident, on the page and in the first answer of the server."""

from __future__ import annotations

from markupsafe import Markup

from rldk.core.text import counted, in_words, sentence
from rldk.dashboard.page.html import piece, show
from rldk.dashboard.page.panels import RunView
from rldk.judge.scores.alarms import tone_of
from rldk.present.html import part
from rldk.present.incidents import worst_incident
from rldk.present.verdicts import SHORT_SCORES, at_worst

__all__ = ["draw_header", "head", "scores", "worst_incident_card"]


def draw_header(view: RunView, tab: str) -> None:
    """The head of the run; `tab` is the view that is open."""
    show(head(view), "header", view=tab)


def head(view: RunView) -> Markup:
    """Name, verdict, age of the last line, and remarks."""
    return piece("head", view, _remarks(view))


def _remarks(view: RunView) -> list[str]:
    """What a user must know to read the page correctly: what has not been read or judged yet, and what was skipped."""
    state, remarks = view.state, []
    rows, judged, done = int(state.get("rows", 0)), int(state.get("judged", 0)), state.get("progress", 1.0)
    if state.get("sketched"):
        remarks.append(f"Preview from {state['sketched']:,} events; {100 * done:.0f} % of the log has been read.")
    elif done < 1.0:
        remarks.append(f"{100 * done:.0f} % of the log has been read.")
    if rows - judged > 200:
        remarks.append(f"{judged:,} of {counted(rows, 'event')} have been judged." if judged else "Not judged yet.")
    elif state.get("verdict") == "no_data" and state.get("reason"):
        remarks.append(sentence(f"{state['reason']}."))
    if 0 < state.get("kept", rows) < rows:
        remarks.append("This run is very long: the curves keep the extremes of each section, not every event.")
    if state.get("restarts"):
        remarks.append("The file was started over; its earlier content is gone.")
    if state.get("skipped"):
        remarks.append(f"Part of the file could not be read: {state['skipped']}.")
    if state.get("problem"):
        remarks.append(str(state["problem"]))
    return remarks


def scores(view: RunView) -> Markup:
    """The scores as tiles; empty while there are none."""
    now, worst = view.state.get("scores") or {}, view.state.get("worst_scores") or {}
    tiles = [
        (SHORT_SCORES.get(name, in_words(name)), score, at_worst(score, worst.get(name)), tone_of(score))
        for name, score in now.items()
    ]
    return piece("scores", tiles) if tiles else Markup("")


def worst_incident_card(view: RunView) -> Markup:
    """The incident to read first, and how many more there are; empty without any."""
    incidents = view.incidents
    worst = worst_incident(incidents)
    if worst is None:
        return Markup("")
    more = len(incidents) - 1
    rest = Markup('<p class="soft">{} more under Alerts.</p>').format(more) if more else Markup("")
    return part("incident_card", worst, incidents.index(worst) + 1, (), "", view.acknowledgement(worst)) + rest
