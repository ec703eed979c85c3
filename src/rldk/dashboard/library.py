"""The runs that pages look at, and the answers to what they ask."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rldk.core.errors import ReadError, RLDKError
from rldk.core.text import clean
from rldk.dashboard.beside import alerts_in, checkpoints_in
from rldk.dashboard.folder import Folder, RunFile
from rldk.dashboard.opened import FollowedLog, Opened
from rldk.dashboard.read_table import ReadTable
from rldk.dashboard.watched import Watched
from rldk.ingest.formats.event_log import is_event
from rldk.ingest.source import Source
from rldk.present.plots.source import check_axis

__all__ = ["Library"]

_MOST_OPEN = 8
_MOST_ROWS = 200_000
_LIVE_SECONDS = 30.0


class Library:
    """Opens runs when they are asked for, keeps the last few of them open, and lets go of the rest."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._open: dict[str, Opened] = {}

    def work(self) -> bool:
        """Do a little for the run that was asked for last and has something to do; whether there is more to do."""
        for key, opened in sorted(self._open.items(), key=lambda pair: -pair[1].asked):
            if isinstance(opened, FollowedLog) and not opened.runs and opened.skipped:
                opened.close()
                self._open[key] = ReadTable(opened.path)  # lines, but no events: some other log
                return True
            if opened.work():
                return True
        return False

    def answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a page asked for; a problem is said in `problem`, never raised."""
        questions: dict[str, Callable[..., dict[str, Any]]] = {
            "list": self.listing, "state": self.state, "points": self.points, "places": self.places, "rows": self.rows,
            "analysis": self.analysis, "samples": self.samples, "checkpoints": self.checkpoints, "alerts": self.alerts,
        }  # fmt: skip
        try:
            return questions[name](**arguments)
        except RLDKError as error:
            return {"problem": clean(error, 1000)}
        except OSError as error:
            return {"problem": f"The file cannot be read: {error.strerror or error}."}

    def listing(self) -> dict[str, Any]:
        """The runs of the folder."""
        listing = self.folder.list()
        now = time.time()
        files = [[file.key, clean(file.name, 200), file.size, now - file.modified] for file in listing.files]
        return {"files": files, "problem": listing.problem, "left_out": listing.left_out, "led_out": listing.led_out}

    def _opened(self, key: str) -> Opened:
        found = self._open.get(key)
        if found is None:
            path = self.folder.find(key)
            if not path.is_file():
                raise ReadError("This run is no longer in the folder.")
            file = RunFile(key, "", 0, 0.0)
            found = self._open[key] = FollowedLog(path) if file.is_followed and _may_hold_events(path) else ReadTable(path)
            found.work()
            while len(self._open) > _MOST_OPEN:
                oldest = min(self._open, key=lambda name: self._open[name].asked)
                self._open.pop(oldest).close()
        found.asked = time.monotonic()
        return found

    def _run(self, key: str, run: str | None) -> Watched:
        opened = self._opened(key)
        found = opened.first() if run is None else opened.runs.get(run)
        if found is None:
            raise ReadError("There is no such run in this file.")
        return found

    def state(self, key: str, run: str | None = None) -> dict[str, Any]:
        """How a run stands: its progress, its judgement, and how old its last line is."""
        opened = self._opened(key)
        found = opened.first() if run is None or run not in opened.runs else opened.runs[run]
        try:
            age = max(0.0, time.time() - opened.path.stat().st_mtime)
        except OSError:
            return {"problem": "This run is no longer in the folder.", "runs": []}
        told = found.state() if found is not None else {}
        pace = told.get("pace") or 0.0
        return {
            **told,
            "key_of_run": found.run_id if found is not None else None,
            "runs": [[name, clean(name, 200)] for name in opened.runs],
            "problem": clean(opened.problem, 1000),
            "skipped": clean(opened.skipped, 1000),
            "progress": opened.progress,
            "age": age,
            "live": age < max(_LIVE_SECONDS, min(20 * pace, 3600.0)),
            "finished": self.folder.beside(key, "_final_report.json") is not None,
            "follows": isinstance(opened, FollowedLog),
            "started_over": opened.started_over,
        }

    def points(
        self, key: str, run: str | None, names: list[str], buckets: int, span: list[float] | None, axis: str = "step"
    ) -> dict[str, Any]:
        """Points of columns that are drawn together."""
        source = self._run(key, run).source
        if any(name not in source.names() for name in names):
            return {"x": np.zeros(0), "ys": [np.zeros(0) for _ in names]}
        x, ys = source.points(names, buckets, None if span is None else (span[0], span[1]), check_axis(axis))
        return {"x": x, "ys": ys}

    def places(self, key: str, run: str | None, steps: list[float], axis: str) -> dict[str, Any]:
        """Where steps lie on an axis."""
        return {"x": self._run(key, run).source.places(np.array(steps, dtype=np.float64), check_axis(axis))}

    def analysis(self, key: str, run: str | None = None) -> dict[str, Any]:
        """What the trackers know."""
        return self._run(key, run).analysis()

    def rows(
        self, key: str, run: str | None = None, span: list[float] | None = None, axis: str = "step"
    ) -> dict[str, Any]:
        """The rows themselves, for export."""
        return self._run(key, run).rows(None if span is None else (span[0], span[1]), _MOST_ROWS, check_axis(axis))

    def samples(self, key: str, run: str | None, start: int, count: int, words: str) -> dict[str, Any]:
        """Some of the recorded samples."""
        found, total = self._run(key, run).samples.page(start, count, words)
        return {"samples": found, "total": total}

    def checkpoints(self, key: str) -> dict[str, Any]:
        """The table of checkpoints that lies beside the log."""
        return checkpoints_in(self.folder.beside(key, "_checkpoint_summary.csv"))

    def alerts(self, key: str) -> dict[str, Any]:
        """The alerts that the run itself wrote down, by its own limits."""
        return alerts_in(self.folder.beside(key, "_alerts.json"))


def _may_hold_events(path: Any) -> bool:
    """Whether the first lines are events, or are not there yet."""
    try:
        source = Source(path)
        first = source.head_objects[:20]
        return not source.is_binary and (not first or any(map(is_event, first)))
    except RLDKError:
        return True
