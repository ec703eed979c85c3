"""Results as a notebook displays them: the verdict, the incidents, and what could be judged."""

from __future__ import annotations

from markupsafe import Markup

from rldk.core.text import counted, short_number
from rldk.judge.result import Result
from rldk.judge.results import Results
from rldk.present.html import asset, badge, part, text
from rldk.present.incidents import accepted, cause_line
from rldk.present.palette import DARK, LIGHT
from rldk.present.verdicts import MAIN_SCORES, SHORT_SCORES, ranking

__all__ = ["framed", "result_html", "results_html"]

_MOST_INCIDENTS = 5


def framed(inner: Markup) -> Markup:
    """Pieces of a page in the colours of the notebook, light or dark, without touching anything else in it."""
    rules = Markup(".rldk-result{{{0}color:var(--rldk-ink);{1}}}@media (prefers-color-scheme:dark){{.rldk-result{{{2}}}}}")
    style = rules.format(Markup(LIGHT.variables()), asset("rldk.present", "parts.css"), Markup(DARK.variables()))
    return Markup('<style>{}</style><div class="rldk-result">{}</div>').format(style, inner)


def result_html(result: Result) -> Markup:
    """One run: its verdict, its scores and its incidents."""
    name = "live run" if result.source is None else result.source.run_id
    scores = " · ".join(
        f"{SHORT_SCORES[score]} {short_number(round(result.scores[score], 2))}" for score in MAIN_SCORES if score in result.scores
    )
    head = Markup('<p>{} <b>{}</b> {} <span class="soft">{}</span></p>').format(
        badge(result.verdict), text(name, 80), text(result.reason), text(f"{counted(result.engine.events, 'event')}. {scores}")
    )
    coverage = Markup('<p class="soft">coverage {}: {}</p>').format(text(result.coverage.level), text(result.coverage.sentence))
    cards = [
        part("incident_card", incident, number, (), "", result.acknowledgement_of(incident), accepted(incident, result))
        for number, incident in enumerate(result.incidents[:_MOST_INCIDENTS], 1)
    ]
    return framed(head + coverage + Markup("").join(cards))


def results_html(results: Results) -> Markup:
    """Several runs as a table, the worst first; one run as itself."""
    if len(results) == 1:
        return result_html(results[0])
    rows = Markup("")
    for result in sorted(results, key=lambda one: ranking(one.verdict, len(one.anomalies))):
        said = cause_line(result.worst, result.reason)
        rows += Markup("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>").format(
            badge(result.verdict), text(result.run.run_id, 80), result.engine.events, text(said)
        )
    head = Markup("<tr><th>verdict</th><th>run</th><th>events</th><th>cause</th></tr>")
    return framed(Markup("<table>{}{}</table>").format(head, rows))
