"""The curves of many runs, drawn over each other: each run by itself, or groups of runs as mean and band."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from rldk.comparison.mean_curve import finite_points, mean_and_band
from rldk.core.errors import RLDKError, UsageError
from rldk.core.event import Event
from rldk.dashboard.open_log import CurveTail
from rldk.dashboard.workbench.run_table import RunTable
from rldk.ingest.follow import EventLog, GrowingLog, open_growing_log, run_name
from rldk.present.plots.growing import GrowingRun
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import DERIVED, first_time, is_date

__all__ = ["AXES", "CurveLog", "Overlay"]

logger = logging.getLogger("rldk")

AXES = ("step", "hours", "time")
"""Along what curves are drawn: the step, the hours since the run began, or the time of day."""

_READ_SECONDS = 1.0  # a page waits for the answer: what is not read by then comes with the next one
_MAX_VALUES = 60_000_000
_BUCKET = 256
_MEAN_ROWS = 10_000
_MEAN_CELLS = 160

Span = tuple[float, float] | None


class CurveLog:
    """The curves of the runs of a log, without a judgement; read on as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = 0.0
        self.stamp: tuple[int, int] | None = None
        self.runs: dict[str, GrowingRun] = {}
        self.caught_up = False
        self._log: GrowingLog | CurveTail | None = None

    def read(self) -> None:
        """Read a little; `caught_up` once there is no more."""
        if self._log is None:
            found = open_growing_log(self.path)
            if isinstance(found, EventLog):  # a tail for curves alone takes half of the time
                found.close()
                self._log = CurveTail(self.path)
            else:
                self._log = found
        if isinstance(self._log, CurveTail):
            self._read_lines(self._log)
        elif self._log is not None:
            self._read_whole(self._log)
        else:
            self.caught_up = True

    def _read_lines(self, tail: CurveTail) -> None:
        generation = tail.generation
        events = tail.read_new()
        if tail.generation != generation:
            self.runs = {}
        by_run: dict[str, list[Event]] = {}
        for event in events:
            by_run.setdefault(run_name(event, self.path), []).append(event)
        for name, group in by_run.items():
            run = self.runs.setdefault(name, GrowingRun(name))
            run.take(group)
            if run.size > _MAX_VALUES // 4:
                self.runs[name] = run.thinned(_BUCKET)
        self.caught_up = tail.caught_up

    def _read_whole(self, log: GrowingLog) -> None:
        new = log.read_new()
        if new is not None:
            self.runs = {run.run_id: GrowingRun.of(run) for run in new.runs}
        self.caught_up = not getattr(log, "is_reading", False)
        if not self.caught_up:
            time.sleep(0.002)

    def run(self, name: str | None, number: int) -> GrowingRun | None:
        """A run by its name; where the log is not split in the same way as in the index, by its number."""
        if name in self.runs:
            return self.runs[name]
        runs = list(self.runs.values())
        return runs[number] if number < len(runs) else None

    @property
    def size(self) -> int:
        """How many values it holds."""
        return sum(run.size for run in self.runs.values())

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()


class Overlay:
    """The curves of the runs that a page has selected; logs that were asked for last are kept."""

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._logs: dict[str, CurveLog] = {}

    def _runs(self, wanted: list[str]) -> tuple[dict[str, GrowingRun], int]:
        """The runs of these ids as far as they are read, and how many are not read to their end."""
        until, now = time.monotonic() + _READ_SECONDS, time.monotonic()
        found: dict[str, GrowingRun] = {}
        behind = 0
        for one, key, known, row in self._table.found(wanted):
            log = self._opened(key)
            log.asked = now
            if log.stamp != known.stamp:
                log.stamp, log.caught_up = known.stamp, False
            try:
                while not log.caught_up and time.monotonic() < until:
                    log.read()
            except (RLDKError, OSError):
                continue  # the table says why
            except Exception:
                logger.exception("The curves of %s could not be read", key)
                continue
            behind += not log.caught_up
            run = log.run(row.get("run_id"), row["number"])
            if run is not None and len(run):
                found[one] = run
        self._bound(now)
        return found, behind

    def _opened(self, key: str) -> CurveLog:
        if key not in self._logs:
            self._logs[key] = CurveLog(self._table.path_of(key))
        return self._logs[key]

    def _bound(self, now: float) -> None:
        """Drop the logs that were not asked for now if all of them hold too much."""
        held = sum(log.size for log in self._logs.values())
        for key, log in sorted(self._logs.items(), key=lambda item: item[1].asked):
            if held <= _MAX_VALUES or log.asked == now:
                return
            held -= log.size
            log.close()
            del self._logs[key]

    def metrics(self, runs: list[str]) -> dict[str, Any]:
        """The metrics of runs, each with the number of runs that have it; and whether all of them can be drawn by time."""
        found, behind = self._runs(runs)
        counts: dict[str, int] = {}
        for run in found.values():
            for name in run.names():
                if name not in DERIVED:
                    counts[name] = counts.get(name, 0) + 1
        timed = bool(found) and all(run.is_timed for run in found.values())
        dated = timed and all(is_date(first_time(run.times)) for run in found.values())
        return {"metrics": counts, "runs": list(found), "behind": behind, "timed": timed, "dated": dated}

    def curves(
        self, runs: list[str], metrics: list[str], axis: str = "step", span: list[float] | None = None, buckets: int = 220,
        groups: dict[str, str] | None = None, x_log: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """The points of metrics, for each run or for each group of runs (a name for each id)."""
        if axis not in AXES:
            raise UsageError(f"Expected `axis` to be one of {AXES}, got {axis!r}.")
        found, behind = self._runs(runs)
        part = None if span is None else (span[0], span[1])
        drawn: dict[str, list[dict[str, Any]]] = {}
        for metric in metrics:
            having = {one: run for one, run in found.items() if metric in run.names()}
            if groups is None:
                points = {one: points_of(run, metric, buckets, part, axis) for one, run in having.items()}
                drawn[metric] = [{"series": one, "x": x, "y": y} for one, (x, y) in points.items()]
            else:
                drawn[metric] = _grouped(having, metric, part, axis, groups, x_log)
        return {"curves": drawn, "behind": behind}


def points_of(run: GrowingRun, metric: str, buckets: int, span: Span, axis: str) -> tuple[FloatArray, FloatArray]:
    """The points of a metric along an axis."""
    if axis != "time":
        x, (y,) = run.points([metric], buckets, span, axis)
        return x, y
    start = first_time(run.times)
    part = None if span is None else ((span[0] - start) / 3600.0, (span[1] - start) / 3600.0)
    x, (y,) = run.points([metric], buckets, part, "hours")
    return start + 3600.0 * x, y


def _grouped(
    runs: dict[str, GrowingRun], metric: str, span: Span, axis: str, groups: dict[str, str], x_log: bool
) -> list[dict[str, Any]]:
    members: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for one, run in runs.items():
        points = finite_points(*points_of(run, metric, _MEAN_ROWS, span, axis))
        members.setdefault(groups.get(one, ""), []).append(points)
    made = []
    for name, curves in members.items():
        mean = mean_and_band(curves, _MEAN_CELLS, x_log)
        if mean is not None:
            x, y, low, high = mean
            made.append({"series": name, "x": x, "y": y, "low": low, "high": high, "runs": len(curves)})
    return made
