"""A page of small plots with every miss and every false alarm: what the judge saw, and what it said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corpus.sheet import log_panels, outcome_panels, page, samples
from corpus.store import OUTCOME, RECORDED, read_json
from rldk.present.plots.panel import Mark, Panel
from rldk.testing.scoring import RunScore

__all__ = ["write_page"]


def write_page(out: Path, scores: Sequence[RunScore], log: str) -> None:
    """Write the page: misses first, then runs that were warned of but not called critical, then false alarms."""
    missed = [one for one in scores if one.label.is_sick and not one.told]
    timid = [one for one in scores if one.label.verdict == "FAILING" and one.told and not one.critical]
    false = [one for one in scores if one.false_criticals + one.false_warnings]
    groups = {"missed": missed, "only a warning": timid, "false alarm": false}
    parts = [_part(what, one, log) for what, group in groups.items() for one in group]
    title = f"{len(missed)} missed, {len(timid)} only warned of, {len(false)} with a false alarm, of {len(scores)} runs"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(title, parts))


def _part(what: str, one: RunScore, log: str) -> tuple[str, str, list[Panel], list[str]]:
    label = one.label
    twins = ["--".join(label.run.split("--")[:2])] if label.kind else []
    run, *others = (read_json(RECORDED / name / OUTCOME) for name in (label.run, *twins))
    marks = [Mark(label.onset, "o", "good", "onset")] if label.is_sick else []
    for number, alarm in enumerate(one.alarms, 1):
        marks.append(Mark(alarm.step, str(number), "critical" if alarm.severity == "critical" else "warning", alarm.type))
    panels = log_panels(label.run, twins, marks, log) + outcome_panels(run, others, marks)
    raised = [f"{number} {alarm.type} ({alarm.severity}) at {alarm.step}" for number, alarm in enumerate(one.alarms, 1)]
    return (
        f"{what}: {label.run}",
        f"{label.verdict}, onset {label.onset}. Raised: {', '.join(raised) or 'nothing'}.",
        panels,
        samples(run),
    )
