"""What `rldk watch` and `rldk run` do about the anomalies of a run that they follow: post them, and decide to stop."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.text import clean
from rldk.judge.follow import FollowedRun
from rldk.monitor import Notification
from rldk.monitor.outputs.incident_messages import IncidentNotification
from rldk.monitor.outputs.services import notifications
from rldk.monitor.stopping import Stop, Stopper

__all__ = ["Alarms", "RunStopper", "add_alarms"]


def add_alarms(parser: argparse.ArgumentParser) -> None:
    """`--notify`, `--on` and `--confirm`."""
    parser.add_argument(
        "--notify", action="append", default=[], metavar="WHERE",
        help="slack, discord, teams, ntfy, email or desktop (set up by environment variables), or an address to post JSON to; "
        "may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--on", choices=SEVERITIES, default="critical", help="how severe an anomaly must be to be acted upon (default: critical)"
    )
    parser.add_argument(
        "--confirm", type=int, default=1, metavar="N",
        help="stop only if the anomaly still stands N events later (default: 1, since the last row may be half written)",
    )  # fmt: skip


class Alarms:
    """Reports each anomaly once, however often a log is read again."""

    def __init__(self, args: argparse.Namespace, say: Callable[[str], None]) -> None:
        self._outputs = notifications(args.notify, args.on)
        self._say = say
        self._told: set[tuple[str, str, int]] = set()

    def fresh(self, run_id: str, anomalies: Iterable[Anomaly]) -> list[Anomaly]:
        """Those that have not been told yet; they are posted, unless they are over already."""
        anomalies = list(anomalies)
        found = [one for one in anomalies if (run_id, one.type, one.step) not in self._told]
        self._told.update((run_id, one.type, one.step) for one in found)
        standing = [one for one in found if one.cleared_index is None]
        for output in self._outputs:
            if isinstance(output, IncidentNotification):
                self._attempt(output, partial(output.follow, run_id, anomalies))
            else:
                self.send(output, run_id, standing)
        return found

    def send(self, output: Notification, run_id: str, anomalies: list[Anomaly]) -> None:
        """Hand anomalies to an output; a failure is said, and ends the output."""
        if anomalies:
            self._attempt(output, lambda: output.notify(anomalies, run_id))

    def close(self, *others: Notification) -> None:
        """Wait a few seconds for what is still to be sent."""
        for output in (*self._outputs, *others):
            self._attempt(output, output.close)

    def _attempt(self, output: Notification, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  of the user's address or command, whatever it is
            self._outputs = [one for one in self._outputs if one is not output]
            self._say(f"{clean(output.key, 200)} failed: {clean(error, 300)}")


class RunStopper:
    """Decides once whether to stop what writes the log, by the first of its runs that calls for it."""

    def __init__(self, severity: str | None, confirm: int) -> None:
        self._options = (severity, confirm)
        Stopper(*self._options)  # wrong options are refused now
        self.decision: tuple[str, Stop] | None = None

    def look(self, runs: Iterable[FollowedRun]) -> tuple[str, Stop] | None:
        """Look at the runs as they stand now; the run and the decision if it is taken now."""
        if self._options[0] is None or self.decision is not None:
            return None
        for run in runs:
            decided = Stopper(*self._options).look(run.judge)
            if decided is not None:
                self.decision = (run.run_id, decided)
                return self.decision
        return None
