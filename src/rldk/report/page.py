"""The whole page: one file without anything outside of it, for one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from rldk._version import __version__
from rldk.core.text import short_number
from rldk.present.incidents import recovered
from rldk.present.palette import DARK, LIGHT
from rldk.present.plots.build import panels_of
from rldk.present.plots.panel import Panel
from rldk.present.verdicts import ranking, verdict_words
from rldk.report import sections
from rldk.report.case import Case, Passed
from rldk.report.markup import asset, badge, digest, figure, table, text

__all__ = ["page"]

_COMPARED = (("reward_mean", "reward"), ("kl_mean", "KL"), ("entropy_mean", "entropy"), ("rollout_length_mean", "length"))
_FEW, _LAID_OVER = 4, 24


class _Figures:
    """Numbers the figures of a page."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, panels: Sequence[Panel]) -> str:
        made = []
        for panel in panels:
            self.count += 1
            made.append(figure(panel, self.count))
        return "".join(made)


def page(cases: Sequence[Case], passed_over: Sequence[Passed] = (), *, title: str = "", made: datetime | None = None) -> str:
    """A report as one HTML document, the worst run first. Nothing in it is fetched, and no script but its own can run."""
    ordered = sorted(cases, key=lambda case: ranking(case.judgement.verdict, len(case.judgement.anomalies)))
    figures = _Figures()
    if not ordered:
        parts = [("trouble", "", _nothing(passed_over))]
    elif len(ordered) == 1:
        parts = _one(ordered[0], figures)
    else:
        parts = _several(ordered, figures)
    if ordered and passed_over:
        parts.append(("unread", "Not read", _unread(passed_over)))
    name = title or _title(ordered)
    links = "".join(f'<a href="#{key}">{text(label)}</a>' for key, label, _ in parts if label)
    body = "".join(_section(key, label, inside) for key, label, inside in parts)
    when = (made or datetime.now(timezone.utc)).strftime("%Y-%m-%d %H:%M UTC")
    script = asset("report.js")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {digest(script)}; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{text(name, 120)}</title><style>{_style()}</style></head><body>"
        '<a class="skip" href="#main">To the content</a>'
        f'<div class="bar"><strong>rldk report</strong><nav aria-label="Parts of the report">{links}</nav>'
        '<button type="button" data-reset hidden>Show all steps</button><button type="button" data-theme-button hidden>Dark</button></div>'
        f'<main id="main">{body}</main><footer>Written {when} by rldk {__version__}. <span class="hint">Zoom by dragging over a picture; double-click shows all steps.</span></footer>'
        f"<script>{script}</script></body></html>\n"
    )


def _style() -> str:
    light = LIGHT.variables() + "--ground:#f5f7f9;color-scheme:light;"
    dark = DARK.variables() + "--ground:#0e1116;color-scheme:dark;"
    return (
        f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}{asset('report.css')}"
    )


def _title(cases: Sequence[Case]) -> str:
    if not cases:
        return "rldk report: nothing could be read"
    if len(cases) == 1:
        return f"{cases[0].judgement.run.run_id}: {verdict_words(cases[0].judgement.verdict)}"
    return f"rldk report: {len(cases)} runs"


def _section(key: str, label: str, inside: str) -> str:
    heading = f"<h2>{text(label)}</h2>" if label and not inside.startswith("<h1") else ""
    named = f' aria-label="{text(label)}"' if label else ""
    return f'<section id="{key}"{named}>{heading}{inside}</section>'


def _one(case: Case, figures: _Figures) -> list[tuple[str, str, str]]:
    parts = [("verdict", "", sections.verdict(case)), ("incidents", "What happened", _incidents(case, figures))]
    if case.panels:
        parts.append(("panels", "Curves", _panels(case.panels, figures)))
    if case.checkpoints:
        parts.append(("checkpoints", "Checkpoints", f'<div class="card">{sections.checkpoints(case)}</div>'))
    parts.append(("coverage", "Coverage", f'<div class="card">{sections.coverage(case)}</div>'))
    parts.append(("configuration", "Configuration", f'<div class="card">{sections.settings(case)}</div>'))
    return parts


def _incidents(case: Case, figures: _Figures, most: int = 4, run: int = 1) -> str:
    judged = case.judgement
    told = "".join(
        sections.incident(case, found, number, figures.of(case.evidence_panels(found, most)), run)
        for number, found in enumerate(judged.incidents, 1)
    )
    if not told:
        said = {
            "healthy": f"Nothing was found. Coverage is {judged.coverage.level}: {judged.coverage.sentence}.",
            "no_data": f"That cannot be told: {judged.reason}. A log of reinforcement learning has at least a reward or a KL; "
            "if yours has them under other names, say which with --field-map KEY=METRIC, and rldk ingest --explain shows what was found.",
        }.get(judged.verdict, "Nothing.")
        told = f'<div class="card"><p>{text(said, 600)}</p></div>'
    told += f'<div class="card">{sections.anomalies(case)}</div>' if judged.anomalies else ""
    return told + sections.machine(case)


def _panels(panels: list[Panel], figures: _Figures) -> str:
    return f'<div class="panels">{figures.of(panels)}</div>'


def _several(cases: Sequence[Case], figures: _Figures) -> list[tuple[str, str, str]]:
    shown = cases[:_LAID_OVER]
    laid_over = panels_of([case.source for case in shown], buckets=max(40, cases[0].buckets * 3 // (len(shown) + 2)))
    lede = "The worst first; each has its colour in the curves."
    if len(cases) > len(shown):
        lede += f" The curves are those of the first {len(shown)}."
    parts = [
        (
            "comparison",
            "Comparison",
            f'<h1>{len(cases)} runs</h1><p class="lede">{lede}</p><div class="card">{_comparison(cases)}</div>',
        )
    ]
    if laid_over:
        parts.append(("panels", "Curves", _panels(laid_over, figures)))
    most = 4 if len(cases) <= _FEW else 2 if len(cases) <= _LAID_OVER else 0
    told = []
    for number, case in enumerate(cases, 1):
        found = case.judgement.incidents or case.judgement.machine
        inside = sections.verdict(case, "h3") + (_incidents(case, figures, most, number) if found else "")
        inside += f'<div class="card">{sections.checkpoints(case)}</div>' if case.checkpoints else ""
        inside += f'<div class="card"><details><summary>Coverage and configuration</summary>{sections.coverage(case)}{sections.settings(case)}</details></div>'
        told.append(f'<div id="run-{number}" class="run">{inside}</div>')
    parts.append(("runs", "Each run", "".join(told)))
    return parts


def _comparison(cases: Sequence[Case]) -> str:
    """All runs in one table, with the colour that each has in the curves."""
    shown = [(name, label) for name, label in _COMPARED if any(case.last(name) is not None for case in cases)]
    rows = []
    for number, case in enumerate(cases):
        judged = case.judgement
        worst = judged.worst
        health = judged.scores.get("overall_health")
        swatch = f'<span class="swatch" style="background:var(--rldk-s{number % len(LIGHT.series)})"></span>'
        rows.append((
            f'{swatch}<a href="#run-{number + 1}">{text(judged.run.run_id, 80)}</a>', badge(judged.verdict),
            text(worst.title + recovered(worst) if worst else judged.reason, 120), str(worst.step) if worst else "",
            "" if health is None else f"{health:.2f}", f"{len(judged.run):,}",
            *("" if (value := case.last(name)) is None else short_number(value) for name, _ in shown),
        ))  # fmt: skip
    headings = ("run", "verdict", "cause", "since step", "health", "events", *(f"last {label}" for _, label in shown))
    return table(headings, rows, numbers=range(3, 6 + len(shown)), caption="Comparison of the runs")


def _unread(passed_over: Sequence[Passed]) -> str:
    rows = [(f"<code>{text(path, 300)}</code>", text(reason)) for path, reason in passed_over[:200]]
    return f'<div class="card">{table(("file", "why"), rows, caption="Not judged")}</div>'


def _nothing(passed_over: Sequence[Passed]) -> str:
    """The page for input that holds no run: what was tried, and what to do."""
    advice = (
        "<ul><li>Give a log that a trainer wrote: JSON lines, <code>trainer_state.json</code>, console output, CSV, TensorBoard or W&amp;B.</li>"
        "<li><code>rldk ingest PATH --explain</code> tells which reader was chosen and where each key went.</li>"
        "<li>Keys of your own find their place with <code>--field-map KEY=METRIC</code>.</li>"
        "<li>If the run has only just begun, wait for its first events.</li></ul>"
    )
    reasons = _unread(passed_over) if passed_over else ""
    return f'<div class="card verdict no_data"><div>{badge("no_data")}<h1>No run could be read</h1>{advice}</div></div>{reasons}'
