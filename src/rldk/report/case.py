"""One run of a report: the result, its panels, the story of each incident, checkpoints and settings."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from rldk.checkpoints.summary import read_summary
from rldk.comparison.grouping import shown_value
from rldk.core.catalog import entry_of
from rldk.core.text import counted, duration, few, short_number
from rldk.judge.incidents.incident import Incident
from rldk.judge.outlook import outlook
from rldk.judge.result import Result
from rldk.present.checkpoints import checkpoint_panel
from rldk.present.incidents import Moment, evidence_keys, marks_of, story
from rldk.present.plots.build import finish, other_panels, panels_of
from rldk.present.plots.panel import Panel
from rldk.present.plots.source import RunSource
from rldk.runs.run import Run

__all__ = ["BUCKETS", "Case", "NotJudged", "checkpoint_rows"]

BUCKETS = 300
NotJudged = tuple[str, str]
"""A file that was not judged, and why."""

_MAX_SUMMARY_BYTES = 4 << 20
_MAX_CHECKPOINTS = 500
_PARTS_OF = {"training_stability": "training_stability_overall"}
_SETTINGS = (
    "lr", "policy_lr", "value_lr", "kl_coef", "target_kl", "clip_range", "clip_range_value", "entropy_coef", "temperature",
)  # fmt: skip


@dataclass(slots=True)
class Case:
    """One run of a report."""

    judgement: Result
    kl_target: float | None = None
    axis: str = "step"
    source: RunSource = field(init=False)
    panels: list[Panel] = field(init=False)
    checkpoints: list[dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        run = self.judgement.run
        self.source = RunSource(run, self.axis)
        marks = marks_of(self.judgement.incidents)
        self.panels = panels_of(self.source, buckets=BUCKETS, marks=marks, kl_target=self.kl_target)
        self.panels += other_panels(self.source, buckets=BUCKETS, marks=marks)
        self.checkpoints = checkpoint_rows(run)
        moved = checkpoint_panel(self.checkpoints, self.source)
        if moved is not None:
            finish([moved], self.source, marks)
            self.panels.append(moved)

    @property
    def outlook(self) -> list[str]:
        """What to expect of the run."""
        return outlook(self.judgement)

    def story(self, incident: Incident) -> list[Moment]:
        """What was seen, in the order in which it began."""
        steps = self.judgement.run.steps
        return story(incident, self.judgement.anomalies, lambda index: int(steps[min(max(index, 0), len(steps) - 1)]))

    def evidence_panels(self, incident: Incident, most: int = 4) -> list[Panel]:
        """The panels that show an incident, those of its first anomaly first, with only this incident marked."""
        by_key = {panel.key: panel for panel in self.panels}
        shown = evidence_keys([moment.anomaly.type for moment in self.story(incident)], by_key, most)
        marks = marks_of([incident], self.judgement.incidents.index(incident) + 1)
        made = [replace(by_key[key], marks=[]) for key in shown]
        finish(made, self.source, marks)
        return made

    def settings(self) -> list[tuple[str, str]]:
        """What is known of how the run was set up, and where its log is."""
        run = self.judgement.run
        found = [("run", run.run_id), ("log", str(run.path)), ("read as", run.framework or run.adapter), ("kind", run.kind)]
        for name, column in run.labels.items():
            texts = list(dict.fromkeys(cell for cell in column.cells() if cell is not None))
            if texts and name not in ("alerts", "notes", "phase", "samples", "tokens_in", "tokens_out"):
                found.append((name.replace("_", " "), few([shown_value(cell) for cell in texts], 3)))
        for name in run.columns:
            entry = entry_of(name)
            if name in _SETTINGS or (entry is not None and entry.group == "settings" and name not in ("global_step", "epoch")):
                values = run.numbers(name)
                values = values[np.isfinite(values)]
                if len(values):
                    same = values.min() == values.max()
                    first, last = short_number(float(values[0])), short_number(float(values[-1]))
                    found.append((name, first if same else f"{first} → {last}"))
        return found

    def span(self) -> str:
        """How long the run is, in events, in steps and, if the log has times, in time."""
        run = self.judgement.run
        if not len(run):
            return "no events"
        length = f"{counted(len(run), 'event')}, steps {run.steps[0]}–{run.steps[-1]}"
        times = run.wall_time[np.isfinite(run.wall_time)]
        return f"{length}, {duration(float(times.max() - times.min()))}" if len(times) > 1 else length

    def parts_of(self, score: str) -> dict[str, float]:
        """What a score is made of; NaN where there is no evidence."""
        return self.judgement.score_parts.get(_PARTS_OF.get(score, score), {})

    def last(self, name: str) -> float | None:
        """The last finite value of a metric."""
        return self.judgement.run.last(name)


def checkpoint_rows(run: Run) -> list[dict[str, str]]:
    """The rows of `R_checkpoint_summary.csv` in the folder of the run's log; empty if there is no such file."""
    for path in _summaries_of(run):
        try:
            if path.is_file() and path.stat().st_size <= _MAX_SUMMARY_BYTES:
                return [row for row in read_summary(path) if row.get("step") or row.get("checkpoint")][:_MAX_CHECKPOINTS]
        except (OSError, ValueError, csv.Error):
            continue
    return []


def _summaries_of(run: Run) -> list[Path]:
    """Where the summary may be: beside the log, under the name of the run or of the log."""
    folder = run.path if run.path.is_dir() else run.path.parent
    stem = re.sub(r"(_events|_metrics)?(\.jsonl|\.csv|\.json)?(\.gz|\.zst)?$", "", run.path.name)
    names = dict.fromkeys(name for name in (run.run_id, stem) if re.fullmatch(r"[\w.+=@ -]{1,128}", name))
    return [folder / f"{name}_checkpoint_summary.csv" for name in names]
