"""The full analysis of a run, the short one, and all metrics, as files."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import write_json
from rldk.monitor.naming import file_of
from rldk.monitor.sinks.base import Sink

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Analysis"]


class Analysis(Sink):
    """Writes `R_comprehensive_analysis.json`, `R_health_summary.json` and `R_comprehensive_metrics.json` at the end, and
    `R_comprehensive_analysis_step_N.json` at each checkpoint.

    Args:
        folder: where they go.
        keep: how many events the file of metrics holds at most; the CSV beside it has them all.
        every: one in so many events is kept for it.
    """

    name: ClassVar[str] = "analysis"

    def __init__(self, folder: str | os.PathLike[str], keep: int = 10_000, every: int = 1) -> None:
        self.folder = Path(folder)
        self.keep = keep
        self.every = max(1, int(every))
        self._rows: list[dict[str, Any]] = []
        self._count = 0

    @cached_property
    def key(self) -> str:
        return f"{self.name} {self.folder.absolute()}"

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._count += 1
        if self._count % self.every == 0 or self._count == 1:
            self._rows.append({"step": event.step, "wall_time": event.wall_time, "metrics": dict(event.metrics)})
            if len(self._rows) > self.keep:
                self._rows = self._rows[::2]  # thinned out, so that the file tells of the whole run in bounded memory
                self.every *= 2

    def save(self, step: int) -> None:
        self._write(f"comprehensive_analysis_step_{step}.json", self._monitor.forensics.get_comprehensive_analysis())

    def close(self) -> None:
        forensics = self._monitor.forensics
        self._write("comprehensive_analysis.json", forensics.get_comprehensive_analysis())
        self._write("health_summary.json", forensics.get_health_summary())
        self._write("comprehensive_metrics.json", self._rows)

    def _write(self, ending: str, value: Any) -> None:
        write_json(file_of(self.folder, self._monitor.run_id, ending), value)
