"""The process that sends notifications: it follows the runs of a folder that are being written, on whatever page people are."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from rldk.core.text import clean
from rldk.dashboard.folder import Folder, ListedLog
from rldk.dashboard.processes import options_of, serve_pipes
from rldk.judge.follow import FollowedRun, LogFollower
from rldk.monitor.alarms import Alarms, curves_of_log

__all__ = ["Notifier", "main"]

_SEARCH_SECONDS = 2.0
_LIVE_SECONDS = 60.0  # a log that was written to this long before the start belongs to a run that goes on
_MAX_FOLLOWED = 50
_JUDGED_AT_ONCE = 500
_MAX_SAID = 20


class _Followed:
    """A log that is followed, and what was last reported of each of its runs."""

    def __init__(self, folder: Folder, log: ListedLog) -> None:
        self.name = log.name
        self.follower: LogFollower[FollowedRun] = LogFollower(folder.find(log.key), FollowedRun)
        self.reported: dict[str, tuple[int, int]] = {}


class Notifier:
    """Follows the logs that are written to while the dashboard runs, and reports what is raised in them.

    Args:
        folder: the folder of the dashboard.
        notify: the names or addresses of the notifications, as `rldk watch --notify` takes them.
        severity: how severe an anomaly must be.
    """

    def __init__(self, folder: Folder, notify: Sequence[str], severity: str = "critical") -> None:
        self.folder = folder
        self._said: deque[str] = deque(maxlen=_MAX_SAID)
        self._alarms = Alarms(notify, severity, self._said.append)
        self._since = time.time() - _LIVE_SECONDS
        self._next_search = 0.0
        self._followed: dict[str, _Followed] = {}
        self._owners: dict[str, str] = {}

    def work(self) -> bool:
        """Do a little; whether there is more to do at once."""
        if time.monotonic() >= self._next_search:
            self._search()
            self._next_search = time.monotonic() + _SEARCH_SECONDS
        busy = [self._read(key, one) for key, one in self._followed.items()]  # of each a little
        return any(busy)

    def answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the page shows of it: where it reports to, how many logs it follows, and what has failed."""
        return {"to": [clean(key, 100) for key in self._alarms.keys], "followed": len(self._followed), "said": list(self._said)}

    def close(self) -> None:
        """Wait a few seconds for what is still to be sent."""
        for one in self._followed.values():
            one.follower.close()
        self._alarms.close()

    def _search(self) -> None:
        """Follow the logs that have been written to; of too many, those that were written to last."""
        live = [log for log in self.folder.list().logs if log.modified >= self._since][:_MAX_FOLLOWED]
        for key in self._followed.keys() - {log.key for log in live}:
            self._followed.pop(key).follower.close()
        for log in live:
            if log.key not in self._followed:
                self._followed[log.key] = _Followed(self.folder, log)

    def _read(self, key: str, one: _Followed) -> bool:
        """Judge what is new in a log. What it was before is not reported while it is still being read from its start."""
        one.follower.read(_JUDGED_AT_ONCE)
        if one.follower.busy:
            return True
        for run in one.follower.runs.values():
            anomalies = run.judge.anomalies
            now = (len(anomalies), sum(anomaly.cleared_index is None for anomaly in anomalies))
            if one.reported.get(run.run_id, (0, 0)) != now:
                one.reported[run.run_id] = now
                curves = partial(curves_of_log, one.follower.path, run.run_id)
                self._alarms.fresh(self._name(key, one, run.run_id), anomalies, curves)
        return False

    def _name(self, key: str, one: _Followed, run_id: str) -> str:
        """The run in messages: its id, with that of its log where another log has a run of the same id."""
        return run_id if self._owners.setdefault(run_id, key) == key else f"{one.name}/{run_id}"


def main(argv: list[str]) -> None:
    """Notify about the runs of a folder, until the process at the other end of the pipes ends."""
    notifier = Notifier(Folder(argv[0]), *options_of(os.environ))
    serve_pipes(notifier, notifier.close)


if __name__ == "__main__":
    main(sys.argv[1:])
