"""KL against its target, and the adaptive coefficient, under the contract's name."""

from __future__ import annotations

from rldk.judge.trackers.kl_schedule import KLScheduleMetrics, KLScheduleTracker

__all__ = ["KLScheduleMetrics", "KLScheduleTracker"]
