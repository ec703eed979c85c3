"""The KL against its target, and the coefficient that is to keep it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan

from rldk.core.stats.base import check_number, check_window
from rldk.core.stats.conditions import RollingShare, RunLength
from rldk.core.stats.slope import RollingSlope
from rldk.judge.scores.formulas import combine, named, within
from rldk.judge.trackers.kl_controller import KLController
from rldk.judge.trackers.tracker import Snapshot, Tracker, number

__all__ = ["DEFAULT_KL_TARGET", "KLScheduleMetrics", "KLScheduleTracker"]

DEFAULT_KL_TARGET = 0.1
"""Shown and measured against where no target is given. No score and no anomaly depends on a target that nobody chose, since
the usual KL differs a hundredfold between trainers."""

FLOOR = 0.01  # nats; noise and growth of a smaller KL do not count, per token or per sequence
CLEAR_TREND = 3.0
STUCK = 10
EDGE = 1.0 + 1e-9  # 0.4 is inside 0.3 ± 0.1, whatever its last bit says
BELOW, ABOVE = 0.5, 0.0


@dataclass(slots=True)
class KLScheduleMetrics(Snapshot):
    """The KL, its target, and the coefficient that steers it. What was not logged is NaN.

    Attributes:
        current_kl: the KL that was logged last; `kl_mean`, `kl_std` and `kl_trend` (change from one value to the next,
            with its t value) are those of the window.
        kl_volatility: noise about the trend as a share of noise and level together: 0 for a smooth line, 0.5 where the
            noise is as large as the KL itself.
        time_in_target_range: share of all KLs so far inside `kl_target` ± `kl_target_tolerance`.
        target_range_stability: the same over the window, where a KL below the range counts half and one above it not.
        target_range_violations: how often the KL has left the range; `violation_length` for how many values it is
            outside now, `longest_violation` for how many it was at most.
        coef_trend: relative change of the coefficient from one value to the next; `coef_change_rate` the mean size of it.
        coef_adaptive: whether the coefficient has ever moved; `coef_stuck` whether it has stopped doing so while the KL
            is outside the range.
        controller_responsiveness: share of the times in which, with the KL outside the range, the coefficient then moved
            the right way.
        controller_overshoot: how far the KL swung beyond the other side of the target, in units of the excursion that
            was being corrected.
        controller_oscillation: 0 for a coefficient that turned once or never in the window, 1/3 for two turns of more
            than 10 %, and towards 1 with more.
    """

    step: int = 0
    current_kl: float = nan
    kl_mean: float = nan
    kl_std: float = nan
    kl_trend: float = nan
    kl_trend_t: float = nan
    kl_volatility: float = nan
    kl_target: float = nan
    kl_target_tolerance: float = nan
    time_in_target_range: float = nan
    target_range_stability: float = nan
    target_range_violations: int = 0
    violation_length: int = 0
    longest_violation: int = 0
    current_kl_coef: float = nan
    coef_trend: float = nan
    coef_change_rate: float = nan
    coef_adaptive: bool = False
    coef_stuck: bool = False
    controller_responsiveness: float = nan
    controller_overshoot: float = nan
    controller_oscillation: float = nan
    kl_health_score: float = nan
    schedule_health_score: float = nan
    _health: tuple[float, ...] = ()
    _schedule: tuple[float, ...] = ()

    @property
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The parts of the two scores, by name."""
        return {"kl_health": named("kl_health", self._health), "schedule_health": named("schedule_health", self._schedule)}


class KLScheduleTracker(Tracker):
    """Follows the KL and the coefficient of its penalty, in constant time and bounded memory.

    Args:
        kl_target: the KL that is aimed at. Without it 0.1 is shown, and the scores do not depend on it.
        kl_target_tolerance: how far from the target the range reaches.
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
    _kl: RollingSlope
    _credit: RollingShare
    _outside: RunLength
    _controller: KLController

    def __init__(self, kl_target: float | None = None, kl_target_tolerance: float = 0.05, window_size: int = 100) -> None:
        self.target_chosen = kl_target is not None
        self.kl_target = DEFAULT_KL_TARGET if kl_target is None else check_number("kl_target", kl_target)
        self.kl_target_tolerance = check_number("kl_target_tolerance", kl_target_tolerance, minimum=0.0)
        self.window_size = check_window("window_size", window_size, minimum=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.kl = nan
        self._kl = RollingSlope(self.window_size)
        self._credit = RollingShare(self.window_size)
        self._outside = RunLength()
        self._controller = KLController(self.window_size)

    def update(self, step: int, kl: float | None = None, kl_coef: float | None = None) -> KLScheduleMetrics:
        """Take what was logged at a step; what is `None` or NaN was not."""
        self._take(step, number("kl", kl), number("kl_coef", kl_coef))
        return self.metrics()

    def observe(self, step: int, metrics: Mapping[str, float]) -> bool:
        if not ("kl_mean" in metrics or "kl_coef" in metrics):
            return False
        self._take(step, metrics.get("kl_mean", nan), metrics.get("kl_coef", nan))
        return True

    def _take(self, step: int, kl: float, kl_coef: float) -> None:
        self.step = step
        if kl_coef == kl_coef:
            self._controller.take_coef(kl_coef)
        if kl != kl:
            return
        self.kl = kl
        if not isfinite(kl):
            return
        self.values += 1
        self._kl.update(kl)
        away = kl - self.kl_target
        side = 0 if abs(away) <= self.kl_target_tolerance * EDGE else 1 if away > 0.0 else -1
        self._outside.update(side != 0)
        self._credit.update(1.0 if not side else ABOVE if side > 0 else BELOW)
        self._controller.take_side(side, abs(away))

    def metrics(self) -> KLScheduleMetrics:
        mean, spread, slope, t, rise = self._kl.line()
        outside, controller = self._outside, self._controller
        level = abs(mean) + FLOOR
        stuck = controller.adaptive and controller.unchanged >= STUCK and controller.outside >= STUCK
        responsiveness, oscillation = controller.responsiveness, controller.oscillation
        overshoot = controller.overshoot if controller.adaptive else nan
        stability = self._credit.share
        if self.kl == self.kl and not isfinite(self.kl):
            health: tuple[float, ...] = (0.0, 0.0, 0.0)
        else:
            above = within(mean - self.kl_target, self.kl_target_tolerance) if self.target_chosen else nan
            health = (above, within(spread, level), within(rise, 2.0 * level) if t > CLEAR_TREND else within(t, CLEAR_TREND))
        schedule = (
            (stability, responsiveness, 1.0 / (1.0 + overshoot)) if self.target_chosen else (nan, nan, nan)
        ) + ((1.0 - oscillation, 0.25 if stuck else 1.0) if controller.adaptive else (nan, nan))  # fmt: skip
        return KLScheduleMetrics(
            self.step, self.kl, mean, self._kl.std, slope, t,
            1.0 if spread == float("inf") else spread / (level + spread),
            self.kl_target, self.kl_target_tolerance,
            1.0 - outside.share, stability, outside.runs, outside.length, outside.longest,
            controller.coef, controller.trend(), controller.change_rate, controller.adaptive, stuck,
            responsiveness, overshoot, oscillation,
            combine(health), combine(schedule), health, schedule,
        )  # fmt: skip
