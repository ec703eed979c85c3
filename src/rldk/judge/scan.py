"""The judgement of a finished run, by the very judge that a live monitor has."""

from __future__ import annotations

from rldk.judge.config import ScanConfig
from rldk.judge.result import Result, result_of
from rldk.runs.run import Run

__all__ = ["judge_run"]


def judge_run(run: Run, config: ScanConfig | None = None) -> Result:
    """Judge a run from its first event to its last."""
    judge = (config or ScanConfig()).judge(run.coverage.reductions)
    for event in run.events():
        judge.take(event)
    return result_of(judge, run)
