"""Several rows as one: those of a step, and, where a run has very many rows, those that follow each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rldk.runs.canonical import held_out_rows
from rldk.runs.run import Run
from rldk.runs.table import ABSENT, Column, Rows

__all__ = ["condensed", "merge_rows_of_a_step"]


def merge_rows_of_a_step(run: Run) -> Run:
    """The run with one row per step: of each metric the value that was logged last, and the phase of training."""
    starts = np.flatnonzero(np.diff(run.steps, prepend=run.steps[0] - 1 if len(run) else 0))
    if len(starts) == len(run):
        return run
    run.notes.append(f"{len(run) - len(starts)} row(s) merged into the row of the same step; the last value logged wins")
    return _merged(run, starts)


def condensed(run: Run, max_rows: int) -> tuple[Run, Rows]:
    """The run in at most so many rows, as if it logged less often; and where in the run each of them ends.

    Of each metric the last value of a group of rows is kept. Choosing others, such as those that are not finite, would make
    few bad rows look like many.
    """
    size = max(1, -(-len(run) // max(max_rows, 1)))
    starts = np.arange(0, len(run), size, dtype=np.intp)
    ends = np.minimum(starts + size, len(run)) - 1
    return (run if size == 1 else _merged(run, starts)), ends


def _merged(run: Run, starts: Rows) -> Run:
    """The run with one row for each group of rows that begins at one of `starts`."""
    columns = {name: _last_cells(column, starts) for name, column in run.columns.items()}
    labels = {name: _last_cells(column, starts) for name, column in run.labels.items()}
    if "phase" in labels:
        labels["phase"] = _last_cells(run.labels["phase"], starts, ~held_out_rows(run.labels["phase"]))
    timed = np.maximum.reduceat(np.where(np.isnan(run.wall_time), -1, np.arange(len(run))), starts)
    times = run.wall_time[np.where(timed < 0, starts, timed)]
    ends = np.append(starts[1:], len(run)) - 1
    return replace(run, steps=run.steps[ends], wall_time=times, columns=columns, labels=labels)


def _last_cells(column: Column, starts: Rows, preferred: npt.NDArray[np.bool_] | None = None) -> Column:
    """The last cell of each group of rows, or the last preferred one if there is any."""
    count = len(column.state)
    place = np.arange(count) if preferred is None else np.arange(count) + count * preferred
    last = np.maximum.reduceat(np.where(column.state != ABSENT, place, -1), starts)
    return column.take(np.where(last < 0, starts, last % count).astype(np.intp))
