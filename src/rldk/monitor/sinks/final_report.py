"""The report at the end of a run: what came in, what was found, and how it stands."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.stats import RunningMoments
from rldk.forensics.plain import write_json
from rldk.monitor.sinks.base import Sink

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["FinalReport"]


class FinalReport(Sink):
    """Writes summary statistics of every metric, the verdict, the scores, the incidents and the coverage, at the end."""

    name: ClassVar[str] = "final report"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.statistics: dict[str, RunningMoments] = {}
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}

    @property
    def key(self) -> str:
        return f"{self.name} {self.path.absolute()}"

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._began = time.time()

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        for name, value in event.metrics.items():
            if name not in self.statistics:
                self.statistics[name] = RunningMoments()
                self.first[name] = value
            self.statistics[name].update(value)
            self.last[name] = value

    def close(self) -> None:
        monitor = self._monitor
        write_json(
            self.path,
            {
                **monitor.summary(),
                "wall_seconds": time.time() - self._began,
                "metrics": {name: self._of(name) for name in sorted(self.statistics)},
            },
        )

    def _of(self, name: str) -> dict[str, Any]:
        seen = self.statistics[name]
        return {
            "count": seen.count,
            "nonfinite": seen.missing + seen.nonfinite,
            "first": self.first[name],
            "last": self.last[name],
            "mean": seen.mean,
            "std": seen.std,
            "min": seen.min,
            "max": seen.max,
        }
