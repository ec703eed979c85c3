"""Notifications about runs that are followed from outside: by `rldk watch`, `rldk run` and the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rldk.core.anomaly import Anomaly
from rldk.core.text import clean
from rldk.monitor.outputs.incident_plot import Curves
from rldk.monitor.outputs.notifications import Notification
from rldk.monitor.outputs.services import notifications

if TYPE_CHECKING:
    from rldk.present.plots.source import Source

__all__ = ["Alarms", "curves_of_log"]


def curves_of_log(path: Path, run_id: str) -> Source:
    """The curves of a run, read from its log when a message is sent: nothing of it is kept before."""
    from rldk.ingest import read_runs
    from rldk.present.plots.source import RunSource

    return RunSource(next(run for run in read_runs(path).runs if run.run_id == run_id))


class Alarms:
    """Reports each incident once, and again when it grows or is over, however often a log is read again.

    Args:
        notify: the names or addresses of the notifications.
        severity: how severe an anomaly must be.
        say: called with what there is to say about a notification that failed.
    """

    def __init__(self, notify: Sequence[str], severity: str, say: Callable[[str], None]) -> None:
        self._outputs = notifications(notify, severity)
        self._say = say
        self._told: set[tuple[str, str, int]] = set()

    @property
    def keys(self) -> list[str]:
        """The notifications that are in use, by names that hold no secrets."""
        return [output.key for output in self._outputs]

    def fresh(self, run_id: str, anomalies: Iterable[Anomaly], curves: Curves | None = None) -> list[Anomaly]:
        """Those anomalies that have not been told yet. Services get the messages that all of them call for, with a plot."""
        anomalies = list(anomalies)
        found = [one for one in anomalies if (run_id, one.type, one.step) not in self._told]
        self._told.update((run_id, one.type, one.step) for one in found)
        for output in self._outputs:
            self._attempt(output, partial(output.follow, run_id, anomalies, curves))
        return found

    def send(self, output: Notification, run_id: str, anomalies: list[Anomaly]) -> None:
        """Hand anomalies to an output; a failure is said, and ends the output."""
        if anomalies:
            self._attempt(output, lambda: output.notify(anomalies, run_id))

    def close(self, *others: Notification) -> None:
        """Wait a few seconds for what is still to be sent."""
        every = (*self._outputs, *others)
        for output in every:
            output.end_soon()
        for output in every:
            self._attempt(output, output.close)

    def _attempt(self, output: Notification, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  of the user's address or command, whatever it is
            self._outputs = [one for one in self._outputs if one is not output]
            self._say(f"{clean(output.key, 200)} failed: {clean(error, 300)}")
