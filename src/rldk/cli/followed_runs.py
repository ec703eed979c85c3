"""The runs that `rldk watch` and `rldk run` follow: their last rows, the decision to stop them, and what is said of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from math import isfinite, nan
from pathlib import Path

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.text import clean, duration, short_number
from rldk.ingest.discovery import LogFinder, newest_first
from rldk.judge.config import ScanConfig
from rldk.judge.follow import FollowedRun
from rldk.judge.incidents.incident import Incident
from rldk.monitor.outputs.incident_plot import RecentEvents
from rldk.monitor.stopping import Stop, Stopper
from rldk.present.plots.standard import MAIN_METRICS
from rldk.present.verdicts import MAIN_SCORES, SHORT_SCORES

__all__ = ["History", "RecordedRun", "RunStopper", "WatchedRun", "alert_line", "newest_log", "progress_line"]

_MAX_CELLS = 512
_READ_TOGETHER = 0.2
_SHOWN = frozenset(MAIN_METRICS)


class RecordedRun(FollowedRun):
    """A run that is followed, with its last rows, from which the plot of a notification is drawn."""

    def __init__(self, run_id: str, framework: str | None, config: ScanConfig) -> None:
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


class History:
    """A series of any length in at most 512 cells; each cell keeps the value that is farthest from the one before it."""

    __slots__ = ("_each", "_open", "cells", "count", "first", "last")

    def __init__(self) -> None:
        self.cells: list[float] = []
        self.count = 0
        self.first = self.last = nan
        self._each = 1
        self._open: list[float] = []

    def add(self, value: float) -> None:
        """Take the next value."""
        self.first = value if self.count == 0 else self.first
        self.last = value
        self.count += 1
        self._open.append(value)
        if len(self._open) == self._each:
            self._close()

    def _close(self) -> None:
        self.cells.append(_farthest(self._open, self.cells[-1] if self.cells else nan))
        self._open = []
        if len(self.cells) == _MAX_CELLS:
            pairs = zip(self.cells[::2], self.cells[1::2], strict=True)
            kept: list[float] = []
            for pair in pairs:
                kept.append(_farthest(list(pair), kept[-1] if kept else nan))
            self.cells, self._each = kept, 2 * self._each

    def values(self) -> list[float]:
        """The cells, and the last value of the one that is not full yet."""
        return [*self.cells, *self._open[-1:]]


def _farthest(values: list[float], before: float) -> float:
    """The value to keep of several: one that is not finite if there is one, else the one farthest from the value before."""
    broken = [value for value in values if not isfinite(value)]
    if broken:
        return broken[0]
    return max(values, key=lambda value: abs(value - before)) if isfinite(before) else values[-1]


class WatchedRun(RecordedRun):
    """A run as the screen shows it: judged, with its curves, its pace and the time that is left."""

    def __init__(self, run_id: str, framework: str | None, config: ScanConfig, total_steps: int | None) -> None:
        super().__init__(run_id, framework, config)
        self.total_steps = total_steps
        self.curves: dict[str, History] = {}
        self.last_step = 0
        self._times: deque[tuple[int, float]] = deque(maxlen=50)
        self._logged_minutes = nan
        self._told: set[tuple[int, str]] = set()

    def take(self, event: Event) -> list[Anomaly]:
        if event.phase in (None, "train"):
            for name, value in event.metrics.items():
                if name in _SHOWN:
                    self.curves.setdefault(name, History()).add(value)
            self._logged_minutes = event.metrics.get("eta_minutes", self._logged_minutes)
            self._note_time(event)
        self.last_step = event.step
        return super().take(event)

    def _note_time(self, event: Event) -> None:
        """When an event was logged, or else when it was read; of those that were read together only the last counts."""
        when = time.time() if event.wall_time is None else event.wall_time
        if event.wall_time is None and self._times and when - self._times[-1][1] < _READ_TOGETHER:
            self._times.pop()
        self._times.append((event.step, when))

    def new_incidents(self) -> list[Incident]:
        """The critical incidents that were not among those of an earlier call, or had another cause then."""
        found = [one for one in self.result.incidents if one.severity == "critical"]
        new = [one for one in found if (one.anomalies[0], one.cause) not in self._told]
        self._told.update((one.anomalies[0], one.cause) for one in new)
        return new

    @property
    def seconds_per_step(self) -> float:
        """The recent pace, by the times in the log, or else by those at which events were read; NaN where it is not known."""
        if len(self._times) < 2:
            return nan
        (first, began), (last, ended) = self._times[0], self._times[-1]
        return (ended - began) / (last - first) if last > first and ended > began else nan

    @property
    def seconds_left(self) -> float:
        """The time until the end, where the log says it or the number of steps was given; else NaN."""
        if isfinite(self._logged_minutes):
            return 60 * self._logged_minutes
        if self.total_steps is None:
            return nan
        return max(0, self.total_steps - self.last_step) * self.seconds_per_step


def alert_line(anomaly: Anomaly) -> str:
    """An anomaly as one plain line."""
    return f"step {anomaly.step}  {anomaly.severity.upper()}  {anomaly.type}: {clean(anomaly.message, 300)}"


def progress_line(run: WatchedRun) -> str:
    """The state of a run as one plain line."""
    parts = [f"step {run.last_step}", run.result.verdict]
    parts += [f"{name} {short_number(history.last)}" for name in MAIN_METRICS[:8] if (history := run.curves.get(name))]
    parts += [f"{SHORT_SCORES[name]} {score:.2f}" for name in MAIN_SCORES if (score := run.result.scores.get(name)) is not None]
    if left := duration(run.seconds_left):
        parts.append(f"{left} left")
    return "  ".join(parts)


def newest_log(folder: Path) -> Path | None:
    """The event log of a folder that changed last, or else the newest log of any other kind; `None` without any.

    Event logs come first because a trainer's own files, such as `trainer_state.json`, are written beside them.
    """
    found = newest_first(LogFinder(folder).find())
    newest = next((log for log in found if log.adapter == "rldk"), found[0] if found else None)
    return None if newest is None else newest.path
