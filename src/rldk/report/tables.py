"""The tables of one run: its anomalies, checkpoints, coverage and configuration; and the files that were not judged."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rldk.core.text import clean, short_number
from rldk.present.checkpoints import SHOWN, shown_cell
from rldk.present.html import Table, badge, code
from rldk.report.case import Case, NotJudged

__all__ = ["anomalies", "checkpoints", "inactive", "metrics", "settings", "unread"]

_NUMBERS = ("step", "health_score", "update_ratio", "drift_from_start", "norm")


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
    numbers = [place for place, name in enumerate(names) if name in _NUMBERS]
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
