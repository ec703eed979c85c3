"""The KL against its target, and the coefficient that is to keep it there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite, nan
from typing import Final

from rldk.core.stats.base import check_number, check_window
from rldk.core.stats.run_length import RunLength
from rldk.judge.scores.formulas import combine, within
from rldk.judge.trackers.kl_controller import KLController
from rldk.judge.trackers.kl_schedule_metrics import KLScheduleMetrics, make_kl_metrics
from rldk.judge.trackers.snapshot import number
from rldk.judge.trackers.tracker import Tracker
from rldk.judge.trackers.trend import Trend

__all__ = ["DEFAULT_KL_TARGET", "KLScheduleMetrics", "KLScheduleTracker"]

DEFAULT_KL_TARGET: Final = float("0.1")
"""Shown and measured against where no target is given. It is told from a 0.1 that somebody gave by its identity: no score
and no anomaly rests on a target that nobody chose, since what is usual differs a hundredfold between trainers."""

FLOOR = 0.01  # nats; noise and growth of a KL below it are nothing, by token or by sequence
CLEAR_TREND = 3.0
STUCK = 10
EDGE = 1.0 + 1e-9  # 0.4 is inside 0.3 ± 0.1, whatever its last bit says
BELOW, ABOVE = 0.5, 0.0


class KLScheduleTracker(Tracker):
    """Follows the KL and the coefficient of its penalty, in constant time and bounded memory.

    Args:
        kl_target: the KL that is aimed at. Scores take the target into account only if it is given.
        kl_target_tolerance: how far from the target is still inside the range.
        window_size: how many values the rolling statistics reach back.
    """

    __slots__ = (
        "_controller", "_credit", "_kl", "_outside", "kl", "kl_target", "kl_target_tolerance", "target_chosen",
        "window_size",
    )  # fmt: skip
    parameters = ("kl_target", "kl_target_tolerance", "window_size", "target_chosen")
    kl_target: float
    kl_target_tolerance: float
    window_size: int
    target_chosen: bool
    kl: float
    _kl: Trend
    _credit: Trend
    _outside: RunLength
    _controller: KLController

    def __init__(self, kl_target: float = DEFAULT_KL_TARGET, kl_target_tolerance: float = 0.05, window_size: int = 100) -> None:
        self.target_chosen = kl_target is not DEFAULT_KL_TARGET
        self.kl_target = check_number("kl_target", kl_target)
        self.kl_target_tolerance = check_number("kl_target_tolerance", kl_target_tolerance, least=0.0)
        self.window_size = check_window("window_size", window_size, least=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.kl = nan
        self._kl = Trend(self.window_size)
        self._credit = Trend(self.window_size)
        self._outside = RunLength()
        self._controller = KLController(self.window_size)

    def update(self, step: int, kl: float | None = None, kl_coef: float | None = None) -> KLScheduleMetrics:
        """Take what was logged at a step; what is `None` or NaN was not."""
        self.observe(step, number("kl", kl), number("kl_coef", kl_coef))
        return self.metrics()

    def take_rows(self, rows: Iterable[tuple[int, Mapping[str, float]]]) -> bool:
        """Take what was logged at several steps; whether there was anything of this in them."""
        found = False
        for step, metrics in rows:
            if "kl_mean" in metrics or "kl_coef" in metrics:
                found = True
                self.observe(step, metrics.get("kl_mean", nan), metrics.get("kl_coef", nan))
        return found

    def observe(self, step: int, kl: float, kl_coef: float) -> None:
        """As `update`, without the record."""
        self.step = step
        if kl_coef == kl_coef:
            self._controller.take_coef(kl_coef)
        if kl != kl:
            self.missing += 1
            return
        self.kl = kl
        if not isfinite(kl):
            self.nonfinite += 1
            return
        self.values += 1
        self._kl.add(kl)
        away = kl - self.kl_target
        side = 0 if abs(away) <= self.kl_target_tolerance * EDGE else 1 if away > 0.0 else -1
        self._outside.update(side != 0)
        self._credit.add(1.0 if not side else ABOVE if side > 0 else BELOW)
        self._controller.take_side(side, abs(away))

    def metrics(self) -> KLScheduleMetrics:
        """What is known now, as a record that later updates do not change."""
        mean, spread, slope, t, rise = self._kl.line()
        outside, controller = self._outside, self._controller
        level = abs(mean) + FLOOR
        stuck = controller.adaptive and controller.unchanged >= STUCK and controller.outside >= STUCK
        responsiveness, oscillation = controller.responsiveness, controller.oscillation
        overshoot = controller.overshoot if controller.adaptive else nan
        stability = self._credit.line()[0]
        if self.kl == self.kl and not isfinite(self.kl):
            health: tuple[float, ...] = (0.0, 0.0, 0.0)
        else:
            above = within(mean - self.kl_target, self.kl_target_tolerance) if self.target_chosen else nan
            health = (above, within(spread, level), within(rise, 2.0 * level) if t > CLEAR_TREND else within(t, CLEAR_TREND))
        schedule = (
            (stability, responsiveness, 1.0 / (1.0 + overshoot)) if self.target_chosen else (nan, nan, nan)
        ) + ((1.0 - oscillation, 0.25 if stuck else 1.0) if controller.adaptive else (nan, nan))  # fmt: skip
        return make_kl_metrics(
            self.step, self.kl, mean, self._kl.std, slope, t,
            1.0 if spread == float("inf") else spread / (level + spread),
            self.kl_target, self.kl_target_tolerance,
            1.0 - outside.share, stability, outside.runs, outside.length, outside.longest,
            controller.coef, controller.trend(), controller.change_rate, controller.adaptive, stuck,
            responsiveness, overshoot, oscillation,
            combine(health), combine(schedule), health, schedule,
        )  # fmt: skip
