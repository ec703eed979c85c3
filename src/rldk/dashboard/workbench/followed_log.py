"""A log that is judged for the table: as it grows, a little at a time, with the few numbers that a row shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rldk.comparison.grouping import plain_settings
from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.fleet.row import REWARDS, SPARKLINE_CELLS, reward_metric
from rldk.ingest.run_settings import settings_beside
from rldk.judge.follow import FollowedRun, LogFollower
from rldk.runs.run import Run

__all__ = ["FollowedLog", "Sparkline", "TableRun"]

_JUDGED_AT_ONCE = 100  # about 10 ms, after which a page is answered

Row = dict[str, Any]


class Sparkline:
    """The means of equal parts of a growing series, at most `2 * SPARKLINE_CELLS` of them."""

    def __init__(self) -> None:
        self._cells: list[float] = []
        self._sum, self._count, self._width = 0.0, 0, 1

    def take(self, value: float) -> None:
        self._sum += value
        self._count += 1
        if self._count < self._width:
            return
        self._cells.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self._cells) == 2 * SPARKLINE_CELLS:
            self._cells = [(left + right) / 2 for left, right in zip(self._cells[::2], self._cells[1::2], strict=True)]
            self._width *= 2

    def values(self) -> list[float]:
        """The means so far, the last of a part that is not complete."""
        return [*self._cells, *([self._sum / self._count] if self._count else [])]


class TableRun(FollowedRun):
    """A run that is judged for its row."""

    def __init__(self, run_id: str, framework: str | None = None) -> None:
        super().__init__(run_id, framework)
        self.settings = RunConfig()
        self._last_step: int | None = None
        self._times: tuple[float, float] | None = None
        self._last: dict[str, float] = {}
        self._curves: dict[str, Sparkline] = {}

    def attach(self, run: Run) -> None:
        super().attach(run)
        self.settings, self._framework = run.config, run.framework

    def take(self, event: Event) -> list[Anomaly]:
        self._last_step = event.step
        when = event.wall_time
        if when is not None and when == when:
            self._times = (min(self._times[0], when), max(self._times[1], when)) if self._times else (when, when)
        for name in (*REWARDS, "kl_mean"):
            value = event.metrics.get(name)
            if value is not None and abs(value) < 1e300:  # neither NaN nor infinite
                self._last[name] = value
                if name in REWARDS:
                    self._curves.setdefault(name, Sparkline()).take(value)
        return super().take(event)

    def row(self, number: int, beside: RunConfig) -> Row:
        """The row of the run, the `number`-th of its log: what the table shows of it, as the index has it."""
        result = self.result
        worst, reward = result.worst, reward_metric(self._last)
        return {
            "number": number,
            "run_id": self.run_id,
            "verdict": result.verdict,
            "framework": self._framework,
            "events": self.events,
            "last_step": self._last_step,
            "seconds": None if self._times is None else self._times[1] - self._times[0],
            "reward": None if reward is None else self._last[reward],
            "kl": self._last.get("kl_mean"),
            "reward_curve": [] if reward is None else self._curves[reward].values(),
            "cause_title": worst.title if worst else None,
            "config": plain_settings(self._run_config.with_defaults(self.settings).with_defaults(beside)),
        }


class FollowedLog(LogFollower[TableRun]):
    """A log that is not in the index, or has changed since."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, TableRun)
        self._beside: RunConfig | None = None

    def work(self) -> bool:
        """Judge a little; whether there is more to judge."""
        self.read(_JUDGED_AT_ONCE)
        return self.busy or self.is_reading

    def rows(self) -> list[Row]:
        """A row for each of its runs, as far as they have been judged."""
        if self._beside is None:
            self._beside = RunConfig() if self.path.is_dir() else settings_beside(self.path)
        return [run.row(number, self._beside) for number, run in enumerate(self.runs.values())]
