"""The metrics of a run as a table: one row per event."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import replacing
from rldk.core.jsonio import to_step
from rldk.core.text import writable
from rldk.monitor.outputs.base import FileOutput

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["AnalysisCsv", "MetricsCsv"]

_FIRST = ("step", "wall_time")


class MetricsCsv(FileOutput):
    """Writes one row per event, flushed as it happens; a metric that was not logged is an empty cell.

    Args:
        path: the file. A run that resumes keeps its rows up to the checkpoint; any other starts a new file.
        columns: those in the header from the start; others are added when they first appear.
        every: one row in so many events.
    """

    name: ClassVar[str] = "metrics"

    def __init__(self, path: str | os.PathLike[str], columns: Iterable[str] = (), every: int = 1) -> None:
        super().__init__(path)
        self.columns = list(dict.fromkeys((*_FIRST, *columns)))
        self.every = max(1, int(every))
        self._empty: dict[str, Any] = dict.fromkeys(self.columns, "")
        self._count = 0
        self._file: IO[str] | None = None

    def start(self, monitor: Monitor) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._rewrite(self._kept(monitor.resume_step))

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._count += 1
        if self._count % self.every and self._count > 1:
            return
        metrics = self.values(event)
        if not metrics.keys() <= self._empty.keys():
            metrics = {writable(name): value for name, value in metrics.items()}
            if new := [name for name in metrics if name not in self._empty]:
                self.columns += new
                self._rewrite(self._kept(None))
        if self._file is not None:
            info = event.model_info
            said = {name: info[name] for name in info.keys() & self._empty.keys()}  # facts of the run that have a column
            row = {**self._empty, "step": event.step, "wall_time": event.wall_time, **said, **metrics}
            csv.writer(self._file).writerow(row.values())
            self._file.flush()

    def values(self, event: Event) -> Mapping[str, Any]:
        """What a row holds beside the step, the time and the facts of the run."""
        return event.metrics

    def _kept(self, resume_step: int | None) -> list[dict[str, str]]:
        """The existing rows that stay: all during a run, those up to the checkpoint when it resumes."""
        if self._file is None and (resume_step is None or not self.path.exists()):
            return []
        with self.path.open(newline="", encoding="utf-8") as file:
            rows = [{name: cell for name, cell in row.items() if isinstance(name, str)} for row in csv.DictReader(file)]
        if resume_step is None:
            return rows
        return [row for row in rows if (step := to_step(row.get("step"))) is not None and step <= resume_step]

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        """Rewrite the file with the header and these rows; a reader sees the old file or the new one."""
        if self._file is not None:
            self._file.close()
        self.columns = list(dict.fromkeys((*self.columns, *(name for row in rows[:1] for name in row))))
        self._empty = dict.fromkeys(self.columns, "")
        with replacing(self.path) as part, part.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, self.columns, restval="")
            table.writeheader()
            table.writerows(rows)
        self._file = self.path.open("a", newline="", encoding="utf-8", errors="replace")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class AnalysisCsv(MetricsCsv):
    """Writes, beside the metrics of each event, what the trackers know after it and the scores, so that health can be plotted."""

    name: ClassVar[str] = "analysis table"

    def start(self, monitor: Monitor) -> None:
        super().start(monitor)
        self._monitor = monitor

    def values(self, event: Event) -> Mapping[str, Any]:
        return {**event.metrics, **self._monitor.record().flat(), "step": event.step}
