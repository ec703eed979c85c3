"""What `rldk watch` and `rldk run` do about the anomalies of a run that they follow: their options, and the decision to stop."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.event import Event
from rldk.judge.config import ScanConfig
from rldk.judge.follow import FollowedRun
from rldk.monitor.outputs.incident_plot import RecentEvents
from rldk.monitor.stopping import Stop, Stopper

__all__ = ["RecordedRun", "RunStopper", "add_alarms", "add_notify", "add_receivers"]


def add_receivers(parser: argparse.ArgumentParser) -> None:
    """`--notify`; `rldk.monitor.notifications` makes outputs of what it is given."""
    parser.add_argument(
        "--notify", action="append", default=[], metavar="WHERE",
        help="slack, discord, teams, ntfy, email or desktop (set up by environment variables), or an address to post JSON to; "
        "may be repeated",
    )  # fmt: skip


def add_notify(parser: argparse.ArgumentParser) -> None:
    """`--notify` and `--on`."""
    add_receivers(parser)
    parser.add_argument(
        "--on", choices=SEVERITIES, default="critical", help="how severe an anomaly must be to be acted upon (default: critical)"
    )


def add_alarms(parser: argparse.ArgumentParser) -> None:
    """`--notify`, `--on` and `--confirm`."""
    add_notify(parser)
    parser.add_argument(
        "--confirm", type=int, default=1, metavar="N",
        help="stop only if the anomaly still stands N events later (default: 1, since the last row may be half written)",
    )  # fmt: skip


class RecordedRun(FollowedRun):
    """A run that is followed, with its last rows, from which the plot of a notification is drawn."""

    def __init__(self, run_id: str, framework: str | None = None, config: ScanConfig | None = None) -> None:
        super().__init__(run_id, framework, config)
        self.recent = RecentEvents()

    def take(self, event: Event) -> list[Anomaly]:
        self.recent.add(event)
        return super().take(event)


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
