"""The distribution of the advantages, under the contract's name."""

from __future__ import annotations

from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsMetrics, AdvantageStatisticsTracker

__all__ = ["AdvantageStatisticsMetrics", "AdvantageStatisticsTracker"]
