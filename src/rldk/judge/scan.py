"""The judgement of a finished run, by the same judge that a live monitor uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rldk.core.errors import UsageError
from rldk.core.run_config import RunConfig
from rldk.judge.acknowledgements import acknowledgements_of
from rldk.judge.config import ScanConfig
from rldk.judge.engine import Engine
from rldk.judge.result import Result, result_of
from rldk.runs.merge import condensed
from rldk.runs.run import Run

__all__ = ["CONDENSED_ROWS", "MAX_JUDGED_ROWS", "judge_run", "with_logged_settings"]

MAX_JUDGED_ROWS, CONDENSED_ROWS = 200_000, 100_000
"""The rows of a run that are judged one by one, and in how many a longer run is judged, as if it logged less often: the time that
a scan takes has to end somewhere."""


def judge_run(run: Run, config: ScanConfig | None = None) -> Result:
    """Judge a run from its first event to its last.

    Limits and targets that a live monitor wrote into the log apply here too, unless `config` sets its own.
    """
    settings, problem = with_logged_settings(config or ScanConfig(), run.config)
    if problem:
        run.notes.append(problem)
    judge = settings.judge(run.coverage.reductions)
    judge.engine.take_settings(run.config)
    judged, rows = condensed(run, len(run) if len(run) <= MAX_JUDGED_ROWS else CONDENSED_ROWS)
    if len(judged) < len(run) and (note := _condensed_note(len(run), len(judged))) not in run.notes:
        run.notes.append(note)
    if (note := _unfinished_note(run)) and note not in run.notes:
        run.notes.append(note)
    if len(judged) < len(run):
        judge.engine.view.rows_per_event = len(run) / len(judged)
    for event in judged.events():
        judge.take(event)
    if len(judged) < len(run):
        _place(judge.engine, rows.tolist())
    result = result_of(judge, run)
    result.acknowledged = acknowledgements_of(run.path, run.run_id)
    return result


def _place(engine: Engine, rows: Sequence[int]) -> None:
    """Give all findings their places in the whole run, of which each judged event was the last of several rows, at `rows`."""
    last = len(rows) - 1
    for anomaly in engine.anomalies:
        anomaly.index, anomaly.since = rows[min(anomaly.index, last)], rows[min(anomaly.since, last)]
        if anomaly.cleared_index is not None:
            anomaly.cleared_index = rows[min(anomaly.cleared_index, last)]
    engine.notes = [replace(note, index=rows[note.index]) for note in engine.notes]
    engine.cleared_steps = {rows[index]: step for index, step in engine.cleared_steps.items()}
    engine.events = rows[last] + 1


def _unfinished_note(run: Run) -> str:
    """A note on a log of a Hugging Face trainer that ends before its `max_steps`; else empty."""
    planned, last = run.config.get("max_steps"), int(run.steps[-1]) if len(run) else 0
    if run.config.owner is None or not isinstance(planned, int) or not 0 < last < planned:
        return ""
    return f"the log ends at step {last} of {planned}: the run is still in progress or was stopped there"


def _condensed_note(rows: int, judged: int) -> str:
    size = -(-rows // judged)
    return f"the run has {rows:,} rows: every {size} of them are judged as one, by the last value of each metric"


def with_logged_settings(config: ScanConfig, logged: RunConfig) -> tuple[ScanConfig, str]:
    """Returns the settings of a scan, completed with those of the live run, and why the latter cannot be used, if so."""
    given = logged.scan_settings()
    if not given:
        return config, ""
    try:
        told = ScanConfig.from_dict(given)
    except UsageError as error:
        return config, f"The limits in the log cannot be used: {error}"
    return told.merged_with(config), ""
