"""What a sink is: a place where a monitor puts what it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Sink"]


class Sink:
    """Base of all sinks. Each method may raise: the monitor reports it once and goes on without the sink.

    `start` is called before the first event, with the monitor; `take` once an event, after it was judged; `save` when the
    training has written a checkpoint; `close` at the end, after which the files of the sink are complete.
    """

    name: ClassVar[str] = "sink"

    @property
    def key(self) -> str:
        """What tells it from the other sinks of a monitor: the same thing written twice has the same key."""
        return self.name

    def start(self, monitor: Monitor) -> None:
        """The run begins."""

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        """An event, and the anomalies that it raised."""

    def alert(self, anomaly: Anomaly) -> None:
        """An anomaly that was raised between two events."""

    def save(self, step: int) -> None:
        """A checkpoint was saved at this step."""

    def close(self) -> None:
        """The run is over."""
