"""How each recorded real run is read: adapter, runs, rows, metrics and the unit of its KL, where that folder is at hand.

    python benchmarks/real_runs_read.py

The folder is that of `RLDK_REALRUNS`, or `../shared/realruns` beside the project; its `labels.json` says how many rows each
file has. Nothing of it is copied.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rldk.core.errors import RLDKError
from rldk.ingest import read_runs

ROOT = Path(__file__).resolve().parents[1]
SLACK = 0.02
"""The share of a file's rows that may be summaries, evaluations or repetitions of a step."""


def describe(path: Path, labelled: str) -> tuple[str, bool]:
    """The line of a file, and whether as many rows were read as the label says."""
    try:
        runs = read_runs([path]).runs
    except RLDKError as error:
        return f"not read: {error}", False
    rows = sum(len(run) for run in runs)
    metrics = {name for run in runs for name in run.coverage.metrics}
    unmapped = {name for run in runs for name in run.coverage.unmapped}
    units = "/".join(sorted({run.coverage.reductions.get("kl_mean", "") for run in runs} - {""})) or "-"
    kinds = "/".join(sorted({run.kind for run in runs}))
    good = not labelled.isdigit() or abs(rows - int(labelled)) <= max(1.0, SLACK * int(labelled))
    merged = any("merged" in note for run in runs for note in run.notes)
    counts = f"{len(runs):>5}{rows:>7}{labelled:>9}{len(metrics):>9}{len(unmapped):>10}"
    shown = f"{runs[0].adapter:<12}{kinds:<12}{counts}  {units:<10}"
    return shown + ("" if good else "merged rows of one step" if merged else "OTHER THAN LABELLED"), good or merged


def main() -> int:
    folder = Path(os.environ.get("RLDK_REALRUNS") or ROOT.parent / "shared" / "realruns")
    if not (folder / "labels.json").exists():
        print(f"Real runs: left out, there is no {folder / 'labels.json'}")
        return 0
    labels = json.loads((folder / "labels.json").read_text())
    print(f"{'file':<48}{'adapter':<12}{'kind':<12}{'runs':>5}{'rows':>7}{'labelled':>9}{'metrics':>9}{'unmapped':>10}  KL per")
    right = 0
    for label in labels:
        path = folder / label["repo"].replace("/", "__") / label["path"]
        line, good = describe(path, label["rows"])
        right += good
        print(f"{'#' + str(label['id']) + ' …' + label['path'][-40:]:<48}{line}")
    print(f"{right} of {len(labels)} with the rows of their label")
    return 0


if __name__ == "__main__":
    sys.exit(main())
