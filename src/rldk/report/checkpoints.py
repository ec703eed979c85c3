"""The checkpoints of a run, from the summary beside its log."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from rldk.checkpoints.summary import read_summary
from rldk.runs.run import Run

__all__ = ["checkpoint_rows"]

_MAX_BYTES = 4 << 20
_MAX_ROWS = 500


def checkpoint_rows(run: Run) -> list[dict[str, str]]:
    """The rows of `R_checkpoint_summary.csv` in the folder of the run's log; empty if there is no such file."""
    for path in _candidates(run):
        try:
            if path.is_file() and path.stat().st_size <= _MAX_BYTES:
                return [row for row in read_summary(path) if row.get("step") or row.get("checkpoint")][:_MAX_ROWS]
        except (OSError, ValueError, csv.Error):
            continue
    return []


def _candidates(run: Run) -> list[Path]:
    """Where the summary may be: beside the log, under the name of the run or of the log."""
    folder = run.path if run.path.is_dir() else run.path.parent
    stem = re.sub(r"(_events|_metrics)?(\.jsonl|\.csv|\.json)?(\.gz|\.zst)?$", "", run.path.name)
    names = dict.fromkeys(name for name in (run.run_id, stem) if re.fullmatch(r"[\w.+=@ -]{1,128}", name))
    return [folder / f"{name}_checkpoint_summary.csv" for name in names]
