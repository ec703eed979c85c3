"""The tables of a report: of one run its anomalies, checkpoints, coverage and configuration; all runs; the files not judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup

from rldk.comparison.grouping import differing_settings, shown_value
from rldk.core.text import clean, in_words, short_number
from rldk.fleet.row import settings_in
from rldk.present.checkpoints import SHOWN, shown_cell
from rldk.present.html import Table, badge, code, text
from rldk.present.verdicts import VERDICTS
from rldk.report.case import Case, NotJudged
from rldk.report.entry import Entry
from rldk.report.overlay import SHOWN_FIRST

__all__ = ["RunsTable", "anomalies", "checkpoints", "inactive", "metrics", "runs_table", "settings", "unread"]

_CHECKPOINT_NUMBERS = ("step", "health_score", "update_ratio", "drift_from_start", "norm")
_LAST_VALUES = {"reward": "reward", "kl": "KL", "entropy": "entropy", "length": "length"}
_MAX_SETTINGS, _MAX_SETTING = 6, 24
_WIDTH, _HEIGHT = 80, 20  # of the course of the reward


def anomalies(case: Case) -> Table:
    """Every anomaly, with its value and the limit that it crossed."""
    steps = case.judgement.run.steps
    rows = [
        (
            found.step, badge(found.severity), code(found.type), clean(found.message, 400), short_number(found.value),
            short_number(found.threshold),
            "active" if found.cleared_index is None else f"step {steps[min(found.cleared_index, len(steps) - 1)]}",
        )
        for found in case.judgement.anomalies[:500]
    ]  # fmt: skip
    return Table("Anomalies", ("step", "severity", "type", "what was seen", "value", "limit", "until"), rows, (0, 4, 5))


def checkpoints(case: Case) -> Table:
    """What `R_checkpoint_summary.csv` says of each checkpoint."""
    names = [name for name in SHOWN if any(row.get(name) for row in case.checkpoints)]
    numbers = [place for place, name in enumerate(names) if name in _CHECKPOINT_NUMBERS]
    rows = [[shown_cell(name, row.get(name, "")) for name in names] for row in case.checkpoints]
    return Table("Checkpoints", [SHOWN[name] for name in names], rows, numbers)


def inactive(case: Case) -> Table:
    """The detectors that cannot run, with the metrics that they need."""
    rows = [
        (code(name), Markup(", ").join(code(metric, 60) for metric in missing))
        for name, missing in case.judgement.coverage.inactive
    ]
    return Table("Inactive detectors", ("detector", "not logged"), rows)


def metrics(case: Case) -> Table:
    """The metrics, with the keys they came from and what they are reduced over."""
    covered = case.judgement.run.coverage
    rows = [(code(name, 80), code(key), covered.reductions.get(name, "")) for name, key in covered.metrics.items()]
    return Table("Metrics", ("metric", "key in the log", "per"), rows)


def settings(case: Case) -> Table:
    """What is known of how the run was set up."""
    return Table("Configuration", ("setting", "value"), [(clean(name, 80), clean(value, 300)) for name, value in case.settings()])


def unread(passed_over: Sequence[NotJudged]) -> Table:
    """The files that were not judged, with the reason for each."""
    return Table("Not judged", ("file", "why"), [(code(path, 300), clean(reason, 400)) for path, reason in passed_over[:200]])


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its class on the page, and whether it is aligned to the right."""

    heading: str
    kind: str = ""
    number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that is sorted by something else than what it shows."""

    shown: str
    sort: str


@dataclass(frozen=True, slots=True)
class Line:
    verdict: str
    cells: list[str | Cell]


@dataclass(frozen=True, slots=True)
class RunsTable:
    columns: list[Column]
    rows: list[Line]


def runs_table(entries: Sequence[Entry]) -> RunsTable:
    """The table of these runs, in their order."""
    last = {name: label for name, label in _LAST_VALUES.items() if any(entry.last(name) is not None for entry in entries)}
    configs = [settings_in(entry.row) for entry in entries]
    differing = differing_settings(configs)[:_MAX_SETTINGS]
    columns = [
        Column("run", "name"), Column("verdict", "state"), Column("cause", "cause"), Column("reward", "curve"),
        Column("since step", number=True), Column("health", number=True), Column("events", number=True),
        *(Column(f"last {label}", number=True) for label in last.values()),
        *(Column(in_words(clean(name, 40)), number=True) for name in differing),
    ]  # fmt: skip
    rows = []
    for number, (entry, own) in enumerate(zip(entries, configs, strict=True)):
        rows.append(Line(entry.verdict, [
            _name(entry, number), _verdict(entry), clean(entry.cause, 120), _sparkline(entry),
            _number(entry.row.get("onset_step")), _number(entry.row.get("health"), "{:.2f}"),
            _number(entry.row.get("events"), "{:,}"),
            *(_number(entry.last(name)) for name in last),
            *(_setting(own.get(name)) for name in differing),
        ]))  # fmt: skip
    return RunsTable(columns, rows)


def _name(entry: Entry, number: int) -> Cell:
    colour = f"var(--rldk-s{number})" if number < SHOWN_FIRST else "transparent"
    swatch = Markup('<span class="swatch" style="background:{}"></span>').format(colour)
    name = text(entry.name, 80)
    linked = name if entry.case is None else Markup('<a href="#run-{}">{}</a>').format(number + 1, name)
    return Cell(swatch + linked, clean(entry.name, 80))


def _verdict(entry: Entry) -> Cell:
    shown = badge(entry.verdict)
    if entry.acknowledged:
        shown += Markup(' <span class="tag">acknowledged</span>')
    return Cell(shown, str(VERDICTS.index(entry.verdict)))


def _number(value: float | None, form: str = "") -> str | Cell:
    if value is None or not isfinite(value):
        return ""
    return Cell(form.format(value) if form else short_number(value), repr(value))


def _setting(value: Any) -> str | Cell:
    if value is None:
        return ""
    shown = clean(shown_value(value), _MAX_SETTING)
    return Cell(shown, repr(float(value))) if isinstance(value, (int, float)) and not isinstance(value, bool) else shown


def _sparkline(entry: Entry) -> Cell:
    """The course of the reward, sorted by where it ended."""
    values = [value for value in entry.row.get("reward_curve") or () if value is not None and isfinite(value)]
    if len(values) < 2:
        return Cell("", "")
    low, high = min(values), max(values)
    size = (high - low) or 1.0
    places = " ".join(
        f"{2 + (_WIDTH - 4) * number / (len(values) - 1):.0f},{_HEIGHT - 2 - (_HEIGHT - 4) * (value - low) / size:.0f}"
        for number, value in enumerate(values)
    )
    words = f"reward from {short_number(values[0])} to {short_number(values[-1])}"
    drawn = Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}"><polyline points="{}" fill="none" stroke="var(--rldk-soft)" '
        'stroke-width="1.5"/></svg>'
    )
    return Cell(drawn.format(_WIDTH, _HEIGHT, words, places), repr(values[-1]))
