"""The report at the end of a run: what came in, what was found, and how it stands."""

from __future__ import annotations

import os
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import write_json
from rldk.monitor.sinks.base import Sink
from rldk.monitor.sinks.moments import MetricMoments

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["FinalReport"]


class FinalReport(Sink):
    """Writes summary statistics of every metric, the verdict, the scores, the incidents and the coverage, at the end."""

    name: ClassVar[str] = "final report"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.moments = MetricMoments()

    @cached_property
    def key(self) -> str:
        return f"{self.name} {self.path.absolute()}"

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._began = time.time()

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self.moments.add(event.metrics)

    def close(self) -> None:
        monitor = self._monitor
        write_json(
            self.path,
            {
                **monitor.summary(),
                "wall_seconds": time.time() - self._began,
                "metrics": self.moments.by_metric(),
            },
        )
