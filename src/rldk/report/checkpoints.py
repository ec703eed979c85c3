"""The checkpoints of a run, from the summary beside its log."""

from __future__ import annotations

import csv
import re
from math import nan
from pathlib import Path

import numpy as np

from rldk.core.jsonio import to_number
from rldk.present.plots.panel import Curve, Panel
from rldk.present.plots.source import Source
from rldk.runs.run import Run

__all__ = ["SHOWN", "checkpoint_panel", "checkpoint_rows"]

SHOWN = {
    "checkpoint": "checkpoint",
    "step": "step",
    "verdict": "verdict",
    "health_score": "health",
    "update_ratio": "update / norm",
    "drift_from_start": "drift from start",
    "norm": "norm",
    "nonfinite_parameters": "not finite",
    "dead_tensors": "dead tensors",
    "most_moved_layer": "moved most",
    "problems": "problems",
}
"""The columns of the summary that a report shows, with their headings."""

_MAX_BYTES = 4 << 20
_MAX_ROWS = 500


def checkpoint_rows(run: Run) -> list[dict[str, str]]:
    """The rows of `R_checkpoint_summary.csv` in the folder of the run's log; empty if there is no such file."""
    for path in _candidates(run):
        try:
            if path.is_file() and path.stat().st_size <= _MAX_BYTES:
                with path.open(newline="", encoding="utf-8", errors="replace") as file:
                    rows = [{str(key): str(value or "") for key, value in row.items()} for row in csv.DictReader(file)]
                return [row for row in rows if row.get("step") or row.get("checkpoint")][:_MAX_ROWS]
        except (OSError, ValueError, csv.Error):
            continue
    return []


def _candidates(run: Run) -> list[Path]:
    """Where the summary may be: beside the log, under the name of the run or of the log."""
    folder = run.path if run.path.is_dir() else run.path.parent
    stem = re.sub(r"(_events|_metrics)?(\.jsonl|\.csv|\.json)?(\.gz|\.zst)?$", "", run.path.name)
    names = dict.fromkeys(name for name in (run.run_id, stem) if re.fullmatch(r"[\w.+=@ -]{1,128}", name))
    return [folder / f"{name}_checkpoint_summary.csv" for name in names]


def checkpoint_panel(rows: list[dict[str, str]], source: Source) -> Panel | None:
    """How far the weights moved from one checkpoint to the next, and from the start."""
    steps = source.places(np.array([_number(row.get("step", "")) for row in rows]))
    curves = []
    for number, (name, label) in enumerate((("update_ratio", "since the last"), ("drift_from_start", "since the start"))):
        values = np.array([_number(row.get(name, "")) for row in rows])
        there = np.isfinite(steps) & np.isfinite(values)
        if there.sum() > 1:
            curves.append(Curve(label, name, steps[there], values[there], colour=number))
    return Panel("checkpoints", "Checkpoints", "How far the weights moved", "of their norm", curves) if curves else None


def _number(text: str) -> float:
    number = to_number(text)
    return nan if number is None else number
