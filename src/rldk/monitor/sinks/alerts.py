"""The alerts of a run, one JSON file that is always whole."""

from __future__ import annotations

import os
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import strict, write_json
from rldk.monitor.sinks.base import Sink

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Alerts"]

_PAUSE = 0.5


class Alerts(Sink):
    """Writes every anomaly, and what was found of the machine, to a list of alerts.

    The file is there from the start, so that an empty list means that nothing was found. It is written again when there is
    something new, at most twice a second, and in full at the end.
    """

    name: ClassVar[str] = "alerts"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._dirty = True
        self._written = 0.0

    @cached_property
    def key(self) -> str:
        return f"{self.name} {self.path.absolute()}"

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._write()

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._dirty |= bool(raised)
        if self._dirty and time.monotonic() - self._written >= _PAUSE:
            self._write()

    def alert(self, anomaly: Anomaly) -> None:
        self._write()

    def close(self) -> None:
        self._write()

    def _write(self) -> None:
        found = [anomaly.to_dict() for anomaly in self._monitor.forensics.engine.anomalies]
        for alert in found:
            alert["alert"] = f"{alert['severity']} at step {alert['step']}: {alert['message']}"
        write_json(self.path, strict(found))
        self._dirty, self._written = False, time.monotonic()
