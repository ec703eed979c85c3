"""The whole page as one HTML document without anything outside of it, for one run or several."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import count
from typing import Any

from markupsafe import Markup

from rldk._version import __version__
from rldk.comparison import compare_results
from rldk.core.text import clean
from rldk.judge.scores.alarms import tone_of
from rldk.present.comparison import comparison_pieces
from rldk.present.html import asset, templates
from rldk.present.palette import CSS, DARK, LIGHT
from rldk.present.plots.svg import DASHES, legend
from rldk.present.verdicts import MAIN_SCORES, at_worst, counts_in_words, verdict_words
from rldk.report import tables
from rldk.report.case import BUCKETS, Case, NotJudged
from rldk.report.entry import Entry, Row, entries_of
from rldk.report.figures import overlay_points, picture, points, to_json
from rldk.report.overlay import SHOWN_FIRST, grouping_choices, overlays_of

__all__ = ["MAX_DETAILED", "page"]

_FEW_RUNS, _MAX_COMPARED = 4, 8
MAX_DETAILED = 24
"""How many runs, the worst, a page shows in detail where there are more."""


def page(
    cases: Sequence[Case], passed_over: Sequence[NotJudged] = (), *, title: str = "",
    others: Sequence[Row] = (), group_by: str | None = None,
) -> str:  # fmt: skip
    """A report as one HTML document, the worst run first. It loads nothing, and no script but its own can run.

    `others` are rows of an index (or of `rldk.fleet.row.row_of`) of runs that are only in the table and in the curves; `group_by`
    is the setting by which the curves are grouped when the page is opened.
    """
    entries = entries_of(cases, others)
    detailed = [entry for entry in entries if entry.case is not None]
    several = len(entries) > 1 or bool(others)
    script = asset("rldk.report", "report.js") + (asset("rldk.report", "many.js") if several else Markup(""))
    numbers = count(1)
    rendered = templates("rldk.report").get_template("report.html").render(
        entries=entries, passed_over=passed_over, detailed=len(detailed), few=SHOWN_FIRST,
        **(_several(entries, detailed, group_by) if several else {}),
        links=_links(entries, passed_over),
        most_panels=4 if len(entries) <= _FEW_RUNS else 2, most_panels_later=2 if len(entries) <= MAX_DETAILED else 1,
        title=title or _title(entries), version=__version__,
        made=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        style=_style(), script=script, script_hash=_hash(script),
        tables=tables, picture=picture, points=points, overlay_points=overlay_points, legend=legend, dashes=DASHES, colours=CSS,
        next_number=lambda: next(numbers), main_scores=MAIN_SCORES, at_worst=at_worst, tone_of=tone_of,
    )  # fmt: skip
    return rendered.strip() + "\n"


def _several(entries: Sequence[Entry], detailed: Sequence[Entry], group_by: str | None) -> dict[str, Any]:
    """What only a page with several runs has: the table, the curves of all of them, and what its script needs."""
    choices = grouping_choices(entries, group_by)
    chosen = next(iter(choices)) if group_by else ""
    buckets = max(30, BUCKETS * 3 // (len(detailed) + 2))
    return {
        "table_of_runs": tables.runs_table(entries),
        "overlaid": overlays_of(entries, choices, buckets, chosen),
        "counts": counts_in_words(Counter(entry.verdict for entry in entries)),
        "compared": _compared([entry.case for entry in entries if entry.case is not None], len(entries)),
        "runs_data": to_json({
            "names": [clean(entry.name, 60) for entry in entries], "ends": [entry.ends for entry in entries],
            "first": SHOWN_FIRST, "groupings": list(choices), "group": chosen,
        }),
    }  # fmt: skip


def _compared(cases: Sequence[Case], runs: int) -> Markup:
    """Where a few runs part from the healthiest of them; empty for one run or many."""
    if not 1 < len(cases) == runs <= _MAX_COMPARED:
        return Markup("")
    return comparison_pieces(compare_results([case.judgement for case in reversed(cases)]))


def _links(entries: Sequence[Entry], passed_over: Sequence[NotJudged]) -> list[tuple[str, str]]:
    """The parts of the page that the bar at its top links to."""
    if not entries:
        return []
    if len(entries) == 1 and (only := entries[0].case) is not None:
        curves, saved = bool(only.panels), bool(only.checkpoints)
        found = [
            ("incidents", "What happened", True), ("panels", "Curves", curves), ("checkpoints", "Checkpoints", saved),
            ("coverage", "Coverage", True), ("configuration", "Configuration", True),
        ]  # fmt: skip
    else:
        found = [
            ("comparison", "Comparison", True), ("parting", "Where they part", len(entries) <= _MAX_COMPARED),
            ("panels", "Curves", True), ("runs", "Each run", True),
        ]  # fmt: skip
    return [(key, label) for key, label, there in [*found, ("unread", "Not read", bool(passed_over))] if there]


def _title(entries: Sequence[Entry]) -> str:
    if not entries:
        return "rldk report: nothing could be read"
    if len(entries) == 1:
        return f"{entries[0].name}: {verdict_words(entries[0].verdict)}"
    return f"rldk report: {len(entries):,} runs"


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
