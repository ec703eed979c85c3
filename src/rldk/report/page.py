"""The whole page as one HTML document without anything outside of it, for one run or several."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import count

from markupsafe import Markup

from rldk._version import __version__
from rldk.comparison import compare_results
from rldk.judge.scores.alarms import tone_of
from rldk.present.comparison import comparison_pieces
from rldk.present.html import asset, templates
from rldk.present.palette import CSS, DARK, LIGHT
from rldk.present.plots.build import panels_of
from rldk.present.plots.svg import DASHES, legend
from rldk.present.verdicts import MAIN_SCORES, at_worst, ranking, verdict_words
from rldk.report import tables
from rldk.report.case import Case, Passed
from rldk.report.figures import picture, points

__all__ = ["page"]

_FEW_RUNS, _MAX_DRAWN, _MAX_COMPARED = 4, 24, 8


def page(cases: Sequence[Case], passed_over: Sequence[Passed] = (), *, title: str = "", made: datetime | None = None) -> str:
    """A report as one HTML document, the worst run first. It loads nothing, and no script but its own can run."""
    ordered = sorted(cases, key=lambda case: ranking(case.judgement.verdict, len(case.judgement.anomalies)))
    drawn = ordered[:_MAX_DRAWN]
    buckets = max(40, ordered[0].buckets * 3 // (len(drawn) + 2)) if ordered else 1
    overlaid = panels_of([case.source for case in drawn], buckets=buckets) if len(ordered) > 1 else []
    numbers = count(1)
    script = asset("rldk.report", "report.js")
    rendered = templates("rldk.report").get_template("report.html").render(
        cases=ordered, passed_over=passed_over, overlaid=overlaid, drawn=len(drawn),
        links=_links(ordered, bool(overlaid), passed_over),
        most_panels=4 if len(ordered) <= _FEW_RUNS else 2 if len(ordered) <= _MAX_DRAWN else 0,
        title=title or _title(ordered), version=__version__,
        made=(made or datetime.now(timezone.utc)).strftime("%Y-%m-%d %H:%M UTC"),
        style=_style(), script=script, script_hash=_hash(script),
        compared=_compared(ordered), tables=tables, picture=picture, points=points, legend=legend, dashes=DASHES, colours=CSS,
        next_number=lambda: next(numbers), main_scores=MAIN_SCORES, at_worst=at_worst, tone_of=tone_of,
    )  # fmt: skip
    return rendered.strip() + "\n"


def _compared(cases: Sequence[Case]) -> Markup:
    """Where a few runs part from the healthiest of them; empty for one run or many."""
    if not 1 < len(cases) <= _MAX_COMPARED:
        return Markup("")
    return comparison_pieces(compare_results([case.judgement for case in reversed(cases)]))


def _links(cases: Sequence[Case], overlaid: bool, passed_over: Sequence[Passed]) -> list[tuple[str, str]]:
    """The parts of the page that the bar at its top links to."""
    if not cases:
        return []
    if len(cases) == 1:
        curves, saved = bool(cases[0].panels), bool(cases[0].checkpoints)
        found = [
            ("incidents", "What happened", True), ("panels", "Curves", curves), ("checkpoints", "Checkpoints", saved),
            ("coverage", "Coverage", True), ("configuration", "Configuration", True),
        ]  # fmt: skip
    else:
        found = [
            ("comparison", "Comparison", True), ("parting", "Where they part", len(cases) <= _MAX_COMPARED),
            ("panels", "Curves", overlaid), ("runs", "Each run", True),
        ]  # fmt: skip
    return [(key, label) for key, label, there in [*found, ("unread", "Not read", bool(passed_over))] if there]


def _title(cases: Sequence[Case]) -> str:
    if not cases:
        return "rldk report: nothing could be read"
    if len(cases) == 1:
        return f"{cases[0].judgement.run.run_id}: {verdict_words(cases[0].judgement.verdict)}"
    return f"rldk report: {len(cases)} runs"


def _hash(script: str) -> str:
    """By which the page's policy allows this script, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _style() -> Markup:
    light, dark = LIGHT.variables() + "color-scheme:light;", DARK.variables() + "color-scheme:dark;"
    colours = Markup(
        ":root{{{0}}}@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{1}}}}}"
        "@media screen{{:root[data-theme=dark]{{{1}}}}}"
    )
    return colours.format(light, dark) + asset("rldk.present", "parts.css") + asset("rldk.report", "report.css")
