"""The process that reads logs: it answers what the page asks, and reads and judges in between.

It is not the process of the page, so that a page does not wait while a million events are read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rldk.checkpoints.summary import read_summary
from rldk.core.errors import ReadError
from rldk.core.text import clean, escaped, unescaped
from rldk.dashboard.folder import Folder, is_live, read_alerts
from rldk.dashboard.open_log import OpenLog
from rldk.dashboard.processes import answer_or_problem, serve_pipes
from rldk.dashboard.shown_run import ShownRun
from rldk.ingest.discovery import stamp_of
from rldk.judge.acknowledgements import FILE, acknowledgements_of
from rldk.present.plots.source import check_axis

__all__ = ["RunReader", "main"]

_MAX_OPEN = 8
_MAX_ACK_BYTES = 1 << 20
_MAX_ROWS = 200_000


class RunReader:
    """Opens logs when a page asks for them, keeps the last few of them open, and answers questions about their runs."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._open: dict[str, OpenLog] = {}

    def work(self) -> bool:
        """Do a little for the log that was asked for last and has something to do; whether there is more to do."""
        return any(log.work() for log in sorted(self._open.values(), key=lambda log: -log.asked))

    def answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question of a page."""
        questions: dict[str, Callable[..., dict[str, Any]]] = {
            "list": self.listing, "state": self.state, "points": self.points, "places": self.places, "rows": self.rows,
            "analysis": self.analysis, "samples": self.samples, "checkpoints": self.checkpoints, "alerts": self.alerts,
            "levels": self.levels, "outlook": self.outlook, "compare": self.compare,
        }  # fmt: skip
        nothing = {"files": [], "not_listed": 0, "outside": 0} if name == "list" else {}
        what = f"{name} of {escaped(str(arguments.get('key')))}"
        return {**nothing, **answer_or_problem(lambda: questions[name](**_unescaped(arguments)), what)}

    def listing(self) -> dict[str, Any]:
        """The logs of the folder."""
        listing, now = self.folder.list(), time.time()
        files = [[log.key, clean(log.name, 200), log.size, now - log.modified] for log in listing.logs]
        skipped = [[clean(name), clean(why)] for name, why in listing.skipped]
        return {
            "files": files, "problem": listing.problem, "not_listed": listing.not_listed, "outside": listing.outside,
            "skipped": skipped,
        }  # fmt: skip

    def _log(self, key: str) -> OpenLog:
        found = self._open.get(key)
        if found is None:
            path = self.folder.find(key)
            if not path.exists():
                raise ReadError("This run is no longer in the folder.")
            found = self._open[key] = OpenLog(path)
            found.work()
            while len(self._open) > _MAX_OPEN:
                oldest = min(self._open, key=lambda name: self._open[name].asked)
                self._open.pop(oldest).close()
        found.asked = time.monotonic()
        return found

    def _run(self, key: str, run: str | None) -> ShownRun:
        log = self._log(key)
        found = log.latest or next(iter(log.runs.values()), None) if run is None else log.runs.get(run)
        if found is None:
            raise ReadError("There is no such run in this file.")
        return found

    def state(self, key: str, run: str | None = None) -> dict[str, Any]:
        """The state of a run: what has been read and judged of it, and the age of its last line."""
        log = self._log(key)
        stamp = stamp_of(log.path)
        if stamp is None:
            return {"problem": "This run is no longer in the folder.", "runs": []}
        found = self._run(key, run if run in log.runs else None) if log.runs else None
        age = max(0.0, time.time() - stamp[1] / 1e9)
        problem = "" if found is None else self._acknowledge(log.path, found)
        pace = 0.0 if found is None else found.seconds_per_event
        return {
            **({} if found is None else found.state()),
            "key_of_run": None if found is None else found.run_id,
            "runs": [[name, clean(name, 200)] for name in log.runs],
            "problem": clean(log.problem or problem, 1000),
            "skipped": clean(log.skipped, 1000),
            "progress": log.progress,
            "age": age,
            "live": is_live(age, pace),
            "finished": self.folder.final_report(log.path),
            "restarts": log.restarts,
        }

    def _acknowledge(self, path: Path, run: ShownRun) -> str:
        """Read what was acknowledged of a run; why that cannot be read, if so."""
        file = path.with_name(FILE)
        try:
            known = file.is_file() and self.folder.contains(file) and file.stat().st_size < _MAX_ACK_BYTES
            run.acknowledged = acknowledgements_of(path, run.run_id, strict=True) if known else ()
        except ReadError as error:
            return str(error)
        return ""

    def points(
        self, key: str, run: str | None, names: list[str], buckets: int, span: list[float] | None, axis: str = "step"
    ) -> dict[str, Any]:
        """Points of metrics that are drawn together."""
        source = self._run(key, run).source
        if any(name not in source.names() for name in names):
            return {"x": np.zeros(0), "ys": [np.zeros(0) for _ in names]}
        x, ys = source.points(names, buckets, None if span is None else (span[0], span[1]), check_axis(axis))
        return {"x": x, "ys": ys}

    def places(self, key: str, run: str | None, steps: list[float], axis: str) -> dict[str, Any]:
        """Where steps lie on an axis."""
        return {"x": self._run(key, run).source.places(np.array(steps, dtype=np.float64), check_axis(axis))}

    def analysis(self, key: str, run: str | None = None) -> dict[str, Any]:
        """What the trackers measured."""
        return self._run(key, run).analysis()

    def levels(self, key: str, run: str | None, names: list[str]) -> dict[str, Any]:
        """Of each metric the last value, the median, and the range of nine in ten values."""
        return {"levels": self._run(key, run).levels(names)}

    def outlook(self, key: str, run: str | None = None) -> dict[str, Any]:
        """What to expect of a run; nothing until all of it is read."""
        return {"sentences": self._run(key, run).outlook() if self._log(key).progress == 1.0 else []}

    def compare(self, runs: list[list[str | None]]) -> dict[str, Any]:
        """The comparison of runs with the first of them, as the page shows it."""
        from rldk.comparison.compare import compare_results
        from rldk.present.comparison import comparison_pieces

        found = [(str(key), self._run(str(key), run)) for key, run in runs]
        ids = [run.run_id for _, run in found]
        results = [run.whole_result(run.run_id if ids.count(run.run_id) == 1 else key) for key, run in found]
        return {"html": str(comparison_pieces(compare_results(results)))}

    def rows(self, key: str, run: str | None = None, span: list[float] | None = None, axis: str = "step") -> dict[str, Any]:
        """The rows themselves, for export."""
        return self._run(key, run).table(None if span is None else (span[0], span[1]), _MAX_ROWS, check_axis(axis))

    def samples(self, key: str, run: str | None, start: int, count: int, words: str) -> dict[str, Any]:
        """Some of the recorded samples."""
        found, total = self._run(key, run).samples.page(start, count, words)
        return {"samples": found, "total": total}

    def checkpoints(self, key: str) -> dict[str, Any]:
        """The table of checkpoints beside the log."""
        path = self.folder.beside(key, "_checkpoint_summary.csv")
        return {"rows": [] if path is None else read_summary(path)}

    def alerts(self, key: str) -> dict[str, Any]:
        """The alerts that the run itself wrote, by its own limits."""
        return read_alerts(self.folder.beside(key, "_alerts.json"))


def _unescaped(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a page asks for by names that an earlier answer gave it; the key is left to the folder."""
    made = {}
    for name, value in arguments.items():
        if isinstance(value, str) and name != "key":
            value = unescaped(value)
        elif isinstance(value, list):
            value = [unescaped(one) if isinstance(one, str) else one for one in value]
        made[name] = value
    return made


def main(argv: list[str]) -> None:
    """Read the logs of a folder for the process at the other end of the pipes."""
    serve_pipes(RunReader(Folder(argv[0])))


if __name__ == "__main__":
    main(sys.argv[1:])
