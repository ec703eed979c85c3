"""What is kept of a judged run when there are many: everything that is said about it, and its main curves, but not its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rldk.ingest.read import LogFile, read_log
from rldk.judge.engine import Engine
from rldk.judge.result import Result
from rldk.present.plots.standard import MAIN_METRICS
from rldk.runs.run import Run
from rldk.runs.table import NUMBER, Column

__all__ = ["CURVE_CELLS", "RunHead", "head_of"]

CURVE_CELLS = 480
"""The most values that are kept of a curve: means of equal shares of a longer one."""

_MOST_CURVES = 12


@dataclass(slots=True, repr=False)
class RunHead(Run):
    """A run without its rows: `steps` holds the first and the last one, and `columns` thinned curves."""

    rows: int = 0
    number: int = 0
    kind_of_run: str = "unknown"
    marks: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return self.rows

    @property
    def kind(self) -> str:
        return self.kind_of_run

    def beginning_marks(self) -> frozenset[int]:
        return self.marks

    def whole(self) -> Run:
        """The run with all its rows, read again."""
        return read_log(LogFile(self.path)).runs[self.number]


def head_of(result: Result, number: int) -> Result:
    """A result that can be sent to another process and kept by the thousand: without its engine and the rows of its run.

    `number` is the place of the run among those of its file. Curves are kept where the terminal draws them: of a run with
    something to report.
    """
    run = result.run
    names = [name for name in MAIN_METRICS if name in run.columns][:_MOST_CURVES] if result.incidents or result.machine else []
    ends = [0, -1] if len(run) else []
    head = RunHead(
        run.run_id, run.path, run.adapter, run.framework, run.steps[ends], run.wall_time[ends],
        {name: thinned(run.columns[name]) for name in names}, run.coverage, {}, run.notes, run.config,
        len(run), number, run.kind, run.beginning_marks(),
    )  # fmt: skip
    return replace(result, engine=Engine(()), source=head)


def thinned(column: Column, cells: int = CURVE_CELLS) -> Column:
    """A curve of at most so many values, with the same first and last number."""
    values = column.values
    if len(values) <= cells:
        return Column(values, column.state)
    edges = np.linspace(0, len(values), cells + 1).astype(np.intp)
    there = (column.state == NUMBER) & ~np.isnan(values)
    counts = np.add.reduceat(there.astype(np.float64), edges[:-1])
    with np.errstate(all="ignore"):
        means: npt.NDArray[np.float64] = np.add.reduceat(np.where(there, values, 0.0), edges[:-1]) / counts
    if there.any():
        numbers = values[there]
        known = np.flatnonzero(counts)
        means[known[0]], means[known[-1]] = numbers[0], numbers[-1]
    return Column(means, np.full(cells, NUMBER, dtype=np.uint8))
