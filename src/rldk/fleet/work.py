"""What a worker does with one file: it reads it, judges its runs, and sends back what is kept of a run when there are many:
everything that is said about it, and its main curves, but not its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rldk.ingest.read import FileReport, LogFile, read_log
from rldk.judge.config import ScanConfig
from rldk.judge.engine import Engine
from rldk.judge.result import Result
from rldk.judge.results import judge_report
from rldk.present.plots.standard import MAIN_METRICS
from rldk.runs.run import Run
from rldk.runs.table import NUMBER, Column
from rldk.storage.copies import local_copies
from rldk.storage.places import url_of

__all__ = ["CURVE_CELLS", "JudgedFile", "Reading", "judge_file", "judge_whole", "thinned"]

CURVE_CELLS = 480
"""The most values that are kept of a curve: means of equal shares of a longer one."""

_MOST_CURVES = 12


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read and judged: the same for all files of a scan."""

    config: ScanConfig | None = None
    adapter_hint: str | None = None
    field_map: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file that was read, and the results of its runs in their order."""

    report: FileReport
    results: list[Result]


def judge_whole(reading: Reading, log: LogFile) -> JudgedFile:
    """Read and judge one file; raises `ReadError` where it cannot be read.

    The copy of one that is elsewhere is fetched where this machine, of a cluster, does not have it yet.
    """
    if not log.path.exists() and (url := url_of(log.path)) is not None:
        local_copies(url)
    report = read_log(log, reading.adapter_hint, reading.field_map)
    return JudgedFile(report, judge_report(report, reading.config))


def judge_file(reading: Reading, log: LogFile) -> JudgedFile:
    """The same; its runs come without their rows, so that they can be sent to another process and kept by the thousand."""
    judged = judge_whole(reading, log)
    results = [_head_of(result, number) for number, result in enumerate(judged.results)]
    return JudgedFile(replace(judged.report, runs=[result.run for result in results]), results)


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


def _head_of(result: Result, number: int) -> Result:
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
