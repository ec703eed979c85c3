"""Forecasts made at half of a run: how often the 80 % interval holds the final level, and how wide it is beside a naive one.

    python benchmarks/detection/forecast.py

Over the healthy runs of the corpus. The final level is the mean of the last fifth of the run. The naive forecast is the last
level (median of five rows) plus or minus the spread so far, widened to the same coverage.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from corpus.label import LABELS
from corpus.store import EVENTS, RECORDED
from report import Report, Row
from rldk.functional.convergence import forecast
from rldk.ingest import read_runs
from rldk.runs.table import NUMBER

METRICS = ("reward_mean", "preference_accuracy")


def halves(name: str) -> tuple[float, float, float, float, float] | None:
    """Final level, low and high of the forecast, last level and spread at half of a run."""
    run = max(read_runs([RECORDED / name / EVENTS]).runs, key=len)
    metric = next((metric for metric in METRICS if metric in run.columns), None)
    if metric is None:
        return None
    column = run.columns[metric]
    given = (column.state == NUMBER) & np.isfinite(column.values)
    steps, values = run.steps[given], column.values[given]
    half = len(values) // 2
    found = forecast(steps[:half].tolist(), values[:half].tolist(), float(steps[-1])) if half else None
    spread = float(values[:half].std()) if half else 0.0
    if found is None or spread == 0.0:
        return None
    final = float(values[-max(5, len(values) // 5) :].mean())
    return final, found.low, found.high, float(np.median(values[half - 5 : half])), spread


def main() -> int:
    names = [row["run"] for row in json.loads(LABELS.read_text()) if row["verdict"] == "HEALTHY"]
    final, low, high, last, spread = np.array([found for name in names if (found := halves(name)) is not None]).T
    cover = float(((low <= final) & (final <= high)).mean())
    naive = float(np.quantile(np.abs(final - last) / spread, cover))
    ratio = float(((high - low) / spread).mean()) / (2.0 * naive)
    report = Report()
    report.begin(f"Forecasts at half of {len(final)} healthy runs of the corpus ({len(names) - len(final)} are too short)")
    report.add(Row("final level within the 80 % interval", f"{cover:.0%}", "72 % to 88 %", 0.72 <= cover <= 0.88))
    report.add(Row("width beside a naive forecast", f"{ratio:.2f}", "at most 0.5", ratio <= 0.5))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
