"""The metrics of a run as a table: one row per event."""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import replacing
from rldk.core.jsonio import to_step
from rldk.core.text import csv_cell, writable
from rldk.monitor.outputs.base import FileOutput

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["AnalysisCsv", "MetricsCsv"]

_FIRST = ("step", "wall_time")
_MAX_COLUMNS = 1000
_MAX_PENDING = 10_000  # rows that wait for a disk
_MAX_LATE = 100_000  # rows with cells that wait for their columns
_CELLS_AT_ONCE = 1_000_000  # of a table that is rewritten during the run


class MetricsCsv(FileOutput):
    """Writes one row per event, flushed as it happens; a metric that was not logged is an empty cell.

    Rows that cannot be written, as on a full disk, wait and are written once that works again. A column that appears later is
    added to the whole table, at once while the table is small, otherwise now and then and at the end.

    Args:
        path: the file. A run that resumes keeps its rows up to the checkpoint; any other starts a new file.
        columns: those in the header from the start; others are added when they first appear, up to a thousand.
    """

    name: ClassVar[str] = "metrics"

    def __init__(self, path: str | os.PathLike[str], columns: Iterable[str] = ()) -> None:
        super().__init__(path)
        self.columns = list(dict.fromkeys((*_FIRST, *columns)))
        self._known: dict[str, Any] = dict.fromkeys(self.columns, "")
        self._width = 0  # of the file: the columns beyond it wait for the table to be rewritten
        self._rows = self._rows_at_rewrite = self._size = 0
        self._pending: deque[list[Any]] = deque(maxlen=_MAX_PENDING)
        self._late: dict[int, list[Any]] = {}  # by row, the cells of the columns that wait
        self._file: io.FileIO | None = None

    def start(self, monitor: Monitor) -> None:
        resume_step = monitor.resume_step
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._rewrite(iter(()) if resume_step is None else self._rows_until(resume_step))

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        metrics = self.values(event)
        if not metrics.keys() <= self._known.keys():
            metrics = {writable(name): value for name, value in metrics.items()}
            self._add_columns(name for name in metrics if name not in self._known)
        info = event.model_info
        said = {name: csv_cell(info[name]) for name in info.keys() & self._known.keys()}  # facts of the run that have a column
        row = {**self._known, "step": event.step, "wall_time": event.wall_time, **said, **metrics}
        self._pending.append([*row.values()][: len(self._known)])
        self._write_pending()

    def values(self, event: Event) -> Mapping[str, Any]:
        """What a row holds beside the step, the time and the facts of the run."""
        return event.metrics

    def _add_columns(self, names: Iterable[str]) -> None:
        room = _MAX_COLUMNS - len(self.columns)
        new = list(islice(names, max(room, 0)))
        self.columns += new
        self._known |= dict.fromkeys(new, "")

    def _write_pending(self) -> None:
        """Write the rows that wait; where that fails, they wait on and nothing of them is left in the file."""
        if self._file is None or not os.fstat(self._file.fileno()).st_nlink:
            self._rewrite(iter(()))  # deleted meanwhile: a new table begins
        assert self._file is not None
        while self._pending:
            row = self._pending[0]
            try:
                self._append(_line(row[: self._width]))
            except OSError:
                with suppress(OSError):
                    self._file.truncate(self._size)
                raise
            if len(row) > self._width:
                self._late[self._rows] = row[self._width :]
            self._rows += 1
            self._pending.popleft()
        if len(self.columns) > self._width and self._is_worth_a_rewrite():
            self._complete()

    def _append(self, line: bytes) -> None:
        assert self._file is not None
        done = 0
        while done < len(line):
            done += self._file.write(line[done:]) or 0
        self._size += len(line)

    def _is_worth_a_rewrite(self) -> bool:
        """Whether the table is small, or has grown by a quarter since: so a column in each row costs little in all."""
        grown = self._rows - self._rows_at_rewrite >= self._rows_at_rewrite // 4
        return (grown and self._rows * len(self.columns) <= _CELLS_AT_ONCE) or len(self._late) > _MAX_LATE

    def _complete(self) -> None:
        """Add the columns that wait, with their cells."""
        late, width = self._late, self._width
        with self.path.open(newline="", encoding="utf-8", errors="replace") as file:
            rows = csv.reader(file)
            next(rows, None)
            self._rewrite([*row[:width], *late.get(number, ())] for number, row in enumerate(rows))

    def _rows_until(self, step: int) -> Iterator[list[Any]]:
        """The rows of an earlier part of the run, up to its checkpoint."""
        if not self.path.is_file():
            return
        with self.path.open(newline="", encoding="utf-8", errors="replace") as file:
            table = csv.DictReader(file)
            self._add_columns(name for name in table.fieldnames or () if name not in self._known)
            for row in table:
                at = to_step(row.get("step"))
                if at is not None and at <= step:
                    yield [row.get(name) or "" for name in self.columns]

    def _rewrite(self, rows: Iterator[list[Any]]) -> None:
        """Rewrite the file with the header and these rows; a reader sees the old file or the new one."""
        first = next(rows, None)  # reading may add columns
        count = 0
        with replacing(self.path) as part, part.open("w", newline="", encoding="utf-8", errors="replace") as file:
            table = csv.writer(file)
            table.writerow([csv_cell(name) for name in self.columns])
            for count, row in enumerate(chain(() if first is None else (first,), rows), 1):  # noqa: B007  how many
                table.writerow(row + [""] * (len(self.columns) - len(row)))
        if self._file is not None:
            self._file.close()
        self._file = io.FileIO(self.path, "a")
        self._size = os.fstat(self._file.fileno()).st_size
        self._width, self._late = len(self.columns), {}
        self._rows = self._rows_at_rewrite = count

    def close(self) -> None:
        try:
            if self._pending:
                self._write_pending()
            if self._file is not None and len(self.columns) > self._width and os.fstat(self._file.fileno()).st_nlink:
                self._complete()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None


def _line(row: list[Any]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(row)
    return text.getvalue().encode("utf-8", "replace")


class AnalysisCsv(MetricsCsv):
    """Writes, beside the metrics of each event, what the trackers know after it and the scores, so that health can be plotted."""

    name: ClassVar[str] = "analysis table"

    def start(self, monitor: Monitor) -> None:
        super().start(monitor)
        self._monitor = monitor

    def values(self, event: Event) -> Mapping[str, Any]:
        return {**event.metrics, **self._monitor.record().flat(), "step": event.step}
