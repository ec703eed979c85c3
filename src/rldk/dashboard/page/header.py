"""The head of the page: which run, how it stands, how old its data is."""

from __future__ import annotations

import streamlit as st

from rldk.dashboard.page.context import Look
from rldk.dashboard.page.words import ago, count, named, number, safe
from rldk.judge.scores.alarms import tone_of

__all__ = ["draw_header", "draw_scores", "head", "score_tiles"]

_SHORT = {
    "overall_health": "health", "training_stability": "stability", "convergence_quality": "convergence", "kl_health": "KL",
    "schedule_health": "KL schedule", "gradient_health": "gradients", "advantage_health": "advantages",
    "advantage_quality": "signal", "length_bias": "length bias",
}  # fmt: skip
_WORDS = {"critical": "critical", "warning": "warning", "healthy": "healthy", "no_data": "no verdict yet"}


def draw_header(look: Look, view: str) -> None:
    """Name, verdict, and the age of the last line."""
    st.html(f'<div class="rldk" data-rldk="header" data-view="{safe(view)}">{head(look)}</div>')


def head(look: Look) -> str:
    """The head as HTML."""
    state = look.state
    verdict = str(state.get("verdict", "no_data"))
    facts = [_pulse(look)]
    if state.get("rows"):
        facts.append(f"<span>{count(state['rows'])} events</span>")
    if state.get("last_step") is not None:
        facts.append(f"<span>step {count(state['last_step'])}</span>")
    standing = state.get("standing") or []
    if standing:
        facts.append(f'<span class="{verdict}">{len(standing)} standing {"alert" if len(standing) == 1 else "alerts"}</span>')
    elif state.get("state") == "recovered":
        facts.append('<span class="healthy">recovered</span>')
    if state.get("coverage_level") and verdict != "no_data":
        facts.append(f'<span data-rldk="coverage">coverage {safe(state["coverage_level"])}: {safe(state["coverage"])}</span>')
    badge = f'<span class="badge {verdict}">{_WORDS.get(verdict, "no verdict yet")}</span>'
    return (
        f'<div class="row"><h1>{safe(look.label, 120)}</h1>{badge}</div>'
        f'<div class="row soft" data-rldk="facts">{"".join(facts)}</div>{_remarks(look)}'
    )


def _pulse(look: Look) -> str:
    state = look.state
    age = float(state.get("age", 0.0))
    told = f"last line {ago(age)}"
    if state.get("live"):
        return f'<span class="healthy live" data-rldk="age"><span class="dot"></span>live · {told}</span>'
    word = "finished" if state.get("finished") else "stopped"
    return f'<span data-rldk="age">{word} · {told}</span>'


def _remarks(look: Look) -> str:
    """What a user must know to read the page rightly: what is not read yet, not judged yet, skipped."""
    state, said = look.state, []
    rows, judged = int(state.get("rows", 0)), int(state.get("judged", 0))
    if state.get("sketched"):
        done = f"{100 * state.get('progress', 0):.0f} %"
        said.append(f"A first sketch from {count(state['sketched'])} events; reading the log, {done} done.")
    elif state.get("progress", 1.0) < 1.0:
        said.append(f"Reading the log, {100 * state['progress']:.0f} % done.")
    if rows - judged > 200:
        said.append(f"Judged up to event {count(judged)} of {count(rows)}." if judged else "Not judged yet.")
    if 0 < state.get("kept", rows) < rows:
        said.append("Of this long run the extremes of each stretch are kept, and not every event between them.")
    if state.get("started_over"):
        said.append("The file was begun again; what it held before is gone.")
    if state.get("skipped"):
        said.append(f"Not all of the file can be read: {state['skipped']}.")
    if look.state.get("problem"):
        said.append(str(state["problem"]))
    return "".join(f'<p class="soft">{safe(sentence, 600)}</p>' for sentence in said)


def draw_scores(look: Look) -> None:
    """The scores as tiles."""
    tiles = score_tiles(look)
    if tiles:
        st.html(f'<div class="rldk">{tiles}</div>')


def score_tiles(look: Look) -> str:
    """The scores as HTML; empty while there are none."""
    scores = look.state.get("scores") or {}
    worst = look.state.get("worst_scores") or {}
    tiles = [_tile(_SHORT.get(name, named(name)), value, worst.get(name, value)) for name, value in scores.items()]
    return f'<div class="tiles" data-rldk="scores">{"".join(tiles)}</div>' if tiles else ""


def _tile(label: str, value: float, worst: float) -> str:
    """A score as it is now, with what it was at worst where that is lower."""
    lower = f'<span class="soft">at worst {number(round(worst, 2))}</span>' if worst < value - 0.005 else ""
    bar = f'<div class="bar {tone_of(value)}"><i style="width:{100 * min(max(value, 0.0), 1.0):.0f}%"></i></div>'
    return f'<div class="tile"><span>{safe(label)}</span><b>{number(round(value, 2))}</b>{bar}{lower}</div>'
