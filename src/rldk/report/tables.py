"""The tables of the page: all runs, and of one run its anomalies, checkpoints, coverage and configuration."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rldk.core.jsonio import to_number
from rldk.core.text import clean, short_number
from rldk.present.checkpoints import SHOWN
from rldk.present.html import Table, badge, code, text
from rldk.present.incidents import recovered
from rldk.present.palette import LIGHT
from rldk.report.case import Case, Passed

__all__ = ["anomalies", "checkpoints", "comparison", "inactive", "metrics", "settings", "unread"]

_COMPARED = {"reward_mean": "reward", "kl_mean": "KL", "entropy_mean": "entropy", "rollout_length_mean": "length"}
_NUMBERS = ("step", "health_score", "update_ratio", "drift_from_start", "norm")
_NAMES = ("checkpoint", "most_moved_layer")


def comparison(cases: Sequence[Case]) -> Table:
    """All runs, each with the colour that it has in the curves."""
    shown = {name: label for name, label in _COMPARED.items() if any(case.last(name) is not None for case in cases)}
    rows = []
    for number, case in enumerate(cases):
        judged, worst = case.judgement, case.judgement.worst
        health = judged.scores.get("overall_health")
        name = Markup('<span class="swatch" style="background:var(--rldk-s{})"></span><a href="#run-{}">{}</a>')
        rows.append((
            name.format(number % len(LIGHT.series), number + 1, text(judged.run.run_id, 80)), badge(judged.verdict),
            clean(worst.title + recovered(worst) if worst else judged.reason, 120), worst.step if worst else "",
            "" if health is None else f"{health:.2f}", f"{len(judged.run):,}",
            *("" if (value := case.last(name)) is None else short_number(value) for name in shown),
        ))  # fmt: skip
    headings = ("run", "verdict", "cause", "since step", "health", "events", *(f"last {label}" for label in shown.values()))
    return Table("Comparison of the runs", headings, rows, range(3, 6 + len(shown)))


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
    rows = [[_cell(name, row.get(name, "")) for name in names] for row in case.checkpoints]
    return Table("Checkpoints", [SHOWN[name] for name in names], rows, numbers)


def _cell(name: str, value: str) -> str:
    if name == "verdict":
        return badge(value)
    number = None if name in _NAMES else to_number(value)
    return clean(value, 120) if number is None else short_number(number)


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


def unread(passed_over: Sequence[Passed]) -> Table:
    """The files that were not judged, with the reason for each."""
    return Table("Not judged", ("file", "why"), [(code(path, 300), clean(reason, 400)) for path, reason in passed_over[:200]])
