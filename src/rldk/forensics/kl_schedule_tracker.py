"""KL against its target, and the adaptive coefficient, with the anomalies of that family."""

from __future__ import annotations

from typing import Any, ClassVar

from rldk.forensics.standalone import StandaloneTracker
from rldk.judge.trackers import kl_schedule
from rldk.judge.trackers.kl_schedule import DEFAULT_KL_TARGET, KLScheduleMetrics

__all__ = ["KLScheduleMetrics", "KLScheduleTracker"]


class KLScheduleTracker(StandaloneTracker, kl_schedule.KLScheduleTracker):
    """Follows the KL and the coefficient of its penalty, and reports what is wrong with them.

    Args:
        kl_target: the target, in the unit in which the KL is given; `None` for no target.
        kl_target_tolerance: how far from the target the range reaches.
        window_size: number of values in the rolling statistics.
    """

    family: ClassVar[str] = "kl_schedule"

    def __init__(
        self, kl_target: float | None = DEFAULT_KL_TARGET, kl_target_tolerance: float = 0.05, window_size: int = 100
    ) -> None:
        super().__init__(kl_target, kl_target_tolerance, window_size)

    def _context(self) -> dict[str, Any]:
        target = {"kl_target": self.kl_target, "kl_target_tolerance": self.kl_target_tolerance}
        return target if self.target_chosen else {}

    def _take(self, step: int, kl: float, kl_coef: float) -> None:
        super()._take(step, kl, kl_coef)
        self._judge(step, {"kl_mean": kl, "kl_coef": kl_coef})
