"""Several rows as one: those of a step, and, where a run has very many rows, those that follow each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rldk.core.text import counted, few
from rldk.runs.canonical import POSITIONS, held_out_rows
from rldk.runs.run import Run
from rldk.runs.table import ABSENT, Column, Rows

__all__ = ["condensed", "merge_rows_of_a_step"]

_SHOWN = 3


def merge_rows_of_a_step(run: Run) -> Run:
    """The run with one row per step: of each metric the value that was logged last, and the phase of training.

    Rows that complement each other, such as those of an evaluation, are normal; a note says where values differ.
    """
    starts = np.flatnonzero(np.diff(run.steps, prepend=run.steps[0] - 1 if len(run) else 0))
    if len(starts) == len(run):
        return run
    differing, names = _differing(run, starts)
    if differing:
        said = f"{counted(differing, 'step')} logged more than once, with different values of {few(names, _SHOWN)}"
        run.notes.append(f"{said}: the last value is used")
    return _merged(run, starts)


def _differing(run: Run, starts: Rows) -> tuple[int, list[str]]:
    """How many steps have rows with different values of one metric, and of which metrics."""
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(run))))
    differing = np.zeros(len(starts), dtype=bool)
    names = []
    for name, column in run.columns.items():
        if name in POSITIONS:
            continue
        logged = np.flatnonzero(column.state != ABSENT)
        values, places = column.values[logged], group[logged]
        other = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        found = places[1:][other & (places[1:] == places[:-1])]
        if len(found):
            names.append(name)
            differing[found] = True
    return int(differing.sum()), names


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
