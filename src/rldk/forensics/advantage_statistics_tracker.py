"""The distribution of the advantages, with the anomalies of that family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rldk.forensics.standalone import StandaloneTracker
from rldk.judge.trackers import advantage_statistics
from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsMetrics

__all__ = ["AdvantageStatisticsMetrics", "AdvantageStatisticsTracker"]


class AdvantageStatisticsTracker(StandaloneTracker, advantage_statistics.AdvantageStatisticsTracker):
    """Follows the advantages, and reports what is wrong with them. `window_size`: values in the rolling statistics."""

    family: ClassVar[str] = "advantage_statistics"

    def _take(self, step: int, metrics: Mapping[str, float]) -> None:
        super()._take(step, metrics)
        self._judge(step, metrics)
