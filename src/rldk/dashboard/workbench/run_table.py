"""The table of runs: what the index knows of unchanged logs, and what is judged here of all others, the newest first."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError, RLDKError
from rldk.core.text import clean
from rldk.dashboard.folder import Folder, is_live
from rldk.dashboard.workbench.followed_log import FollowedLog
from rldk.dashboard.workbench.index_rows import IndexRows
from rldk.fleet.parts import name_rows
from rldk.ingest.choose import choose
from rldk.ingest.discovery import candidates, size_and_change
from rldk.ingest.source import Source

__all__ = ["KnownLog", "RunTable"]

logger = logging.getLogger("rldk")

_MAX_ROWS = 10_000
_MAX_SKIPPED = 200
_LOOK_SECONDS = 1.0
_LOOK_SHARE = 10  # a folder that takes a second to walk is walked every ten
_KEPT_OPEN_SECONDS = 600.0
_MAX_OPEN = 64
_LARGE = 16 << 20
_WAIT_SECONDS = 0.005
_NOT_JUDGED: dict[str, Any] = {"number": 0, "verdict": "", "config": {}, "reward_curve": []}

Row = dict[str, Any]


@dataclass(slots=True)
class KnownLog:
    """A log of the folder: its rows, whether they come from the index, and what follows it while they do not.

    `is_log` is `None` until its beginning was read.
    """

    path: Path
    stamp: tuple[int, int]
    rows: list[Row] = field(default_factory=list)
    indexed: bool = False
    is_log: bool | None = None
    waiting: bool = False
    follower: FollowedLog | None = None

    @property
    def changed(self) -> float:
        """When it last changed, in seconds."""
        return self.stamp[1] / 1e9

    def close(self) -> None:
        """Close what follows it."""
        if self.follower is not None:
            self.follower.close()
            self.follower = None


class RunTable:
    """The runs of a folder. `work` judges what is new, a little at a time.

    Attributes:
        version: changes with every change of the rows.
        outside: how many links lead out of the folder.
        skipped: what cannot be opened, such as a pipe, with the reason.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.index = IndexRows(folder)
        self.version = 0
        self.outside = 0
        self.skipped: list[tuple[str, str]] = []
        self._logs: dict[str, KnownLog] = {}
        self._next_look = 0.0

    def look(self) -> None:
        """See what has changed in the folder, at most once per second."""
        begun = time.monotonic()
        if begun < self._next_look:
            return
        new_index = self.index.refresh()
        found = self._stamps()
        for key in self._logs.keys() - found.keys():
            self._logs.pop(key).close()
            self.version += 1
        for key, (path, stamp) in found.items():
            known = self._logs.get(key)
            if known is None or known.stamp != stamp or (new_index and not known.indexed):
                self._logs[key] = self._updated(key, path, stamp, known)
                self.version += 1
        took = time.monotonic() - begun
        self._next_look = begun + max(_LOOK_SECONDS, _LOOK_SHARE * took)

    def _stamps(self) -> dict[str, tuple[Path, tuple[int, int]]]:
        """What may be a log, by its path below the folder."""
        found: dict[str, tuple[Path, tuple[int, int]]] = {}
        self.outside, self.skipped = 0, []
        for path in candidates(self.folder.path, on_skipped=self._skip):
            try:
                stamp = size_and_change(path)
                if (path.is_symlink() or path.is_dir()) and not self.folder.contains(path):
                    self.outside += 1
                elif stamp[0]:
                    found[self.folder.key_of(path)] = (path, stamp)
            except OSError:
                continue  # gone since
        return found

    def _skip(self, path: Path, why: str) -> None:
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append((self.folder.key_of(path), why))

    def _updated(self, key: str, path: Path, stamp: tuple[int, int], known: KnownLog | None) -> KnownLog:
        rows = self.index.of(key, stamp)
        if rows is not None:
            if known is not None:
                known.close()
            return KnownLog(path, stamp, rows, indexed=True, is_log=True)
        if known is None or known.indexed or not known.is_log:
            old = known.rows if known is not None else []  # shown until the log is judged as it is now
            return KnownLog(path, stamp, old, is_log=None, waiting=True)
        known.stamp, known.waiting = stamp, True
        return known

    def work(self) -> bool:
        """Open a log that is new, or judge a little of one; whether there is more to do."""
        waiting = [log for log in self._logs.values() if log.waiting]
        if not waiting:
            return False
        if self.open_new(0.0):
            return True
        self._judge(min(waiting, key=lambda log: (log.stamp[0] > _LARGE, -log.changed)))
        return True

    def open_new(self, seconds: float) -> int:
        """See which of the new files are logs, the newest first, for so many seconds; how many there were."""
        until = time.monotonic() + seconds
        new = sorted((log for log in self._logs.values() if log.is_log is None), key=lambda log: -log.changed)
        for log in new:
            self._open(log)
            if time.monotonic() > until:
                break
        return len(new)

    @property
    def unopened(self) -> int:
        """How many files may be logs and were not opened yet."""
        return sum(log.is_log is None for log in self._logs.values())

    def _open(self, log: KnownLog) -> None:
        self.version += 1
        try:
            choose(Source(log.path))
            log.is_log = True
        except Exception as error:
            if not isinstance(error, (RLDKError, OSError)):
                logger.exception("%s could not be opened", log.path)
            log.is_log, log.waiting, log.rows = False, False, []

    def _judge(self, log: KnownLog) -> None:
        """Judge a little of a log. One that breaks the reader has a row that says so, and the others are judged."""
        if log.follower is None:
            log.follower = FollowedLog(log.path)
        try:
            if log.follower.work():
                if log.follower.is_reading:  # in a thread, which is not to be hurried
                    time.sleep(_WAIT_SECONDS)
                return
            rows, problem = log.follower.rows(), log.follower.problem or "no event yet"
        except (RLDKError, OSError) as error:
            rows, problem = [], str(error)
        except Exception as error:
            logger.exception("%s could not be judged", log.path)
            rows, problem = [], f"it cannot be read ({type(error).__name__})"
        log.waiting, log.indexed, log.rows = False, False, rows or [_without_events(self.folder, log.path, problem)]
        self.version += 1
        if not rows or time.time() - log.changed > _KEPT_OPEN_SECONDS:
            log.close()
        open_logs = [one for one in self._logs.values() if one.follower is not None]
        if len(open_logs) > _MAX_OPEN:
            min(open_logs, key=lambda one: one.changed).close()

    @property
    def waiting(self) -> int:
        """How many logs are not judged yet as they are now."""
        return sum(log.waiting for log in self._logs.values())

    @property
    def parts(self) -> int:
        """How many runs are not listed because they are the beginning of another one."""
        return sum(bool(row.get("part_of")) for log in self._logs.values() for row in log.rows)

    def rows(self) -> list[Row]:
        """A row for each run, the newest first: what is known of it, and where it is."""
        logs = sorted((item for item in self._logs.items() if item[1].is_log), key=lambda item: (-item[1].changed, item[0]))
        made: list[Row] = []
        for key, log in logs:
            kept = [row for row in log.rows if not row.get("part_of")]
            several = len(log.rows) > 1
            for row in kept if log.rows else [{**_NOT_JUDGED, "run_id": self.folder.name_of(key)}]:
                made.append(self._placed(key, log, row, several))
            if len(made) >= _MAX_ROWS:
                break
        name_rows(made)
        return made

    def _placed(self, key: str, log: KnownLog, row: Row, several: bool) -> Row:
        config = {**self.index.shared, **row["config"]} if log.indexed else row["config"]
        run = clean(row.get("run_id") or self.folder.name_of(key), 200)
        return {
            **row, "id": run_id_of(key, row["number"]), "key": key, "path": key, "part": row.get("run_id") if several else None,
            "run_id": run, "changed": log.changed, "status": self._status(log, row), "config": config,
        }  # fmt: skip

    def _status(self, log: KnownLog, row: Mapping[str, Any]) -> str:
        events, seconds = row.get("events") or 0, row.get("seconds") or 0.0
        pace = seconds / events if events else 0.0
        if is_live(time.time() - log.changed, pace):
            return "live"
        return "finished" if self.folder.final_report(log.path) else "stopped"

    def found(self, wanted: list[str]) -> list[tuple[str, str, KnownLog, Row]]:
        """Those of these ids that are in the table, in their order: id, key, log and row."""
        places = {
            run_id_of(key, row["number"]): (key, log, row)
            for key, log in self._logs.items()
            for row in (log.rows or ([_NOT_JUDGED] if log.is_log else []))
        }
        return [(one, *places[one]) for one in dict.fromkeys(wanted) if one in places]

    def path_of(self, key: str) -> Path:
        """The file of a log, which lies in the folder."""
        if key not in self._logs:
            raise ReadError("There is no such run in this folder.")
        return self.folder.find(key)


def _without_events(folder: Folder, path: Path, why: str) -> Row:
    """The row of a log without a run: what is wrong with it stands in place of a cause."""
    name = folder.name_of(folder.key_of(path))
    return {**_NOT_JUDGED, "run_id": name, "verdict": "no_data", "cause_title": clean(why, 300)}


def run_id_of(key: str, number: int) -> str:
    """What an address names a run by: a code that is looked up in the table, and never a path."""
    return hashlib.sha256(f"{key}\0{number}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
