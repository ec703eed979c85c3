"""The head of the page: name and verdict of the run, the age of its data, and its scores."""

from __future__ import annotations

import streamlit as st

from rldk.core.text import ago, counted, in_words, sentence
from rldk.dashboard.page.html import safe, show
from rldk.dashboard.page.panels import RunView
from rldk.judge.scores.alarms import tone_of
from rldk.present.verdicts import SHORT_SCORES, at_worst, verdict_words

__all__ = ["draw_header", "draw_scores", "head", "score_tiles"]


def draw_header(view: RunView, name: str) -> None:
    """The head of the run; `name` is the tab that is open."""
    st.html(f'<div class="rldk" data-rldk="header" data-view="{safe(name)}">{head(view)}</div>')


def head(view: RunView) -> str:
    """Name, verdict, age of the last line, and remarks, as HTML."""
    state = view.state
    verdict = str(state.get("verdict", "no_data"))
    facts = [_pulse(view)]
    if state.get("rows"):
        facts.append(f"<span>{counted(state['rows'], 'event')}</span>")
    if state.get("last_step") is not None:
        facts.append(f"<span>step {state['last_step']:,}</span>")
    standing = state.get("standing") or []
    if standing:
        facts.append(f'<span class="{verdict}">{counted(len(standing), "active alert")}</span>')
    elif state.get("state") == "recovered":
        facts.append('<span class="healthy">recovered</span>')
    if state.get("coverage_level") and verdict != "no_data":
        facts.append(f'<span data-rldk="coverage">coverage {safe(state["coverage_level"])}: {safe(state["coverage"])}</span>')
    badge = f'<span class="badge {verdict}">{"no verdict" if verdict == "no_data" else verdict_words(verdict)}</span>'
    return (
        f'<div class="row"><h1>{safe(view.label, 120)}</h1>{badge}</div>'
        f'<div class="row soft" data-rldk="facts">{"".join(facts)}</div>{_remarks(view)}'
    )


def _pulse(view: RunView) -> str:
    state = view.state
    age = float(state.get("age", 0.0))
    last = f"last line {ago(age)}"
    if state.get("live"):
        return f'<span class="healthy live" data-rldk="age"><span class="dot"></span>live · {last}</span>'
    word = "finished" if state.get("finished") else "stopped"
    return f'<span data-rldk="age">{word} · {last}</span>'


def _remarks(view: RunView) -> str:
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
    return "".join(f'<p class="soft">{safe(remark, 600)}</p>' for remark in remarks)


def draw_scores(view: RunView) -> None:
    """The scores as tiles."""
    tiles = score_tiles(view)
    if tiles:
        show(tiles)


def score_tiles(view: RunView) -> str:
    """The scores as HTML; empty while there are none."""
    scores = view.state.get("scores") or {}
    worst = view.state.get("worst_scores") or {}
    tiles = [_tile(SHORT_SCORES.get(name, in_words(name)), value, worst.get(name, value)) for name, value in scores.items()]
    return f'<div class="tiles" data-rldk="scores">{"".join(tiles)}</div>' if tiles else ""


def _tile(label: str, value: float, worst: float) -> str:
    """A score as it is now, and its lowest value where that was lower."""
    lower = f'<span class="soft">{at_worst(value, worst)}</span>' if at_worst(value, worst) else ""
    bar = f'<div class="bar {tone_of(value)}"><i style="width:{100 * min(max(value, 0.0), 1.0):.0f}%"></i></div>'
    return f'<div class="tile"><span>{safe(label)}</span><b>{value:.2f}</b>{bar}{lower}</div>'
