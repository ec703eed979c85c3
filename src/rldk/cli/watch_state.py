"""A run as `rldk watch` knows it: its curves in bounded memory, the judge, its pace, and what is left."""

from __future__ import annotations

import time
from collections import deque
from math import isfinite, nan

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.judge.config import ScanConfig
from rldk.judge.incidents.incident import Incident
from rldk.judge.result import Result

__all__ = ["CURVES", "History", "RunState"]

CURVES = (
    "reward_mean", "reward_std", "kl_mean", "kl_coef", "entropy_mean", "clip_frac", "rollout_length_mean", "policy_grad_norm",
    "value_grad_norm", "grad_norm", "explained_variance", "value_loss", "policy_loss", "loss", "preference_margin",
    "preference_accuracy", "lr", "tokens_per_second", "mfu", "gpu_memory_gb",
)  # fmt: skip
"""What is shown of a run, the most telling first."""

_KEPT = 512


class History:
    """A series of any length as at most 512 cells; each cell holds the value that is farthest from the one before it."""

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
        if len(self.cells) == _KEPT:
            pairs = zip(self.cells[::2], self.cells[1::2], strict=True)
            kept: list[float] = []
            for pair in pairs:
                kept.append(_farthest(list(pair), kept[-1] if kept else nan))
            self.cells, self._each = kept, 2 * self._each

    def values(self) -> list[float]:
        """The cells, with what the last one holds so far."""
        return [*self.cells, *self._open[-1:]]


def _farthest(values: list[float], before: float) -> float:
    """The value to keep of several: one that is not finite before all, else the one farthest from what was kept before."""
    broken = [value for value in values if not isfinite(value)]
    if broken:
        return broken[0]
    return max(values, key=lambda value: abs(value - before)) if isfinite(before) else values[-1]


class RunState:
    """One run that is being watched."""

    def __init__(self, run_id: str, config: ScanConfig, total_steps: int | None = None) -> None:
        self.run_id = run_id
        self.total_steps = total_steps
        self.judge = config.judge()
        self.curves: dict[str, History] = {}
        self.last_event = time.time()
        self.last_step = 0
        self._paces: deque[tuple[int, float]] = deque(maxlen=50)
        self._told_minutes = nan
        self._result: Result | None = None

    def take(self, events: list[Event]) -> list[Anomaly]:
        """Take new events; the anomalies that they raise."""
        raised: list[Anomaly] = []
        self._result = None
        now = time.time()
        for event in events:
            raised += self.judge.take(event)
            if event.phase in (None, "train"):
                for name, value in event.metrics.items():
                    if name in _SHOWN:
                        self.curves.setdefault(name, History()).add(value)
                self._told_minutes = event.metrics.get("eta_minutes", self._told_minutes)
                self._paces.append((event.step, now if event.wall_time is None else event.wall_time))
            self.last_step = event.step
        self.last_event = now if not events or events[-1].wall_time is None else min(now, _as_clock(events[-1].wall_time, now))
        return raised

    @property
    def events(self) -> int:
        """How many events have been judged."""
        return self.judge.engine.events

    @property
    def result(self) -> Result:
        """All that is known of the run now."""
        if self._result is None:
            self._result = self.judge.result()
        return self._result

    @property
    def verdict(self) -> tuple[str, str]:
        """The worst that was found, and why."""
        return self.result.verdict, self.result.reason

    @property
    def scores(self) -> dict[str, float]:
        """The scores as they stand."""
        return self.result.scores

    @property
    def incidents(self) -> list[Incident]:
        """What went wrong so far, the first first."""
        return self.result.incidents

    @property
    def seconds_a_step(self) -> float:
        """The pace of late, by the log's own clock; NaN where it cannot be told."""
        if len(self._paces) < 2:
            return nan
        (first, began), (last, ended) = self._paces[0], self._paces[-1]
        return (ended - began) / (last - first) if last > first and ended > began else nan

    @property
    def seconds_left(self) -> float:
        """How long it will take, where the log says so or the number of steps was given; else NaN."""
        if isfinite(self._told_minutes):
            return 60 * self._told_minutes
        if self.total_steps is None:
            return nan
        return max(0, self.total_steps - self.last_step) * self.seconds_a_step


def _as_clock(wall_time: float, now: float) -> float:
    """An event's time if it is one of the clock on the wall; some logs count from the start of the run."""
    return wall_time if now - 86_400 * 366 < wall_time <= now + 60 else now


_SHOWN = frozenset(CURVES)
