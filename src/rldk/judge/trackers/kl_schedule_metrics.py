"""What is known of the KL and its schedule after an update."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from rldk.judge.scores.formulas import named
from rldk.judge.trackers.snapshot import Snapshot, quick

__all__ = ["KLScheduleMetrics", "make_kl_metrics"]


@dataclass(frozen=True, slots=True)
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


make_kl_metrics = quick(KLScheduleMetrics)
