"""What an output is: a place where a monitor puts what it sees, or an action it takes."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["FileOutput", "Output"]


class Output:
    """Base of all outputs. Each method may raise: the monitor reports it once, and disables an output that keeps failing.

    An output is called on a thread of its own, in order, so that training never waits for it. One that is quick, and has to see
    the monitor as it is at its event, sets `own_thread` to false.
    """

    name: ClassVar[str] = "output"
    own_thread: ClassVar[bool] = True

    @property
    def key(self) -> str:
        """Distinguishes it from the other outputs of a monitor: the same thing written twice has the same key."""
        return self.name

    def start(self, monitor: Monitor) -> None:
        """The run begins; called before the first event."""

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        """An event that was judged, and the anomalies that it raised."""

    def alert(self, anomaly: Anomaly) -> None:
        """An anomaly that was raised between two events."""

    def save(self, step: int) -> None:
        """The training has saved a checkpoint at this step."""

    def end_soon(self) -> None:
        """The run is over, and `close` follows once all outputs know it: those that wait for a server do so at the same time."""

    def close(self) -> None:
        """The run is over; the output completes its files."""


class FileOutput(Output):
    """Base of the outputs that write to a path, which is part of their key."""

    own_thread: ClassVar[bool] = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @cached_property
    def key(self) -> str:
        return f"{self.name} {self.path.absolute()}"
