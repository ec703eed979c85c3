"""Streaming statistics: each value is taken into account once, in about a microsecond, and memory does not grow.

river has most of these, and serves as an oracle in the tests. It is no dependency at run time: importing `river.drift`
takes about a second and brings scipy with it, and its statistics know neither missing values nor a `state_dict` to
resume from.
"""

from __future__ import annotations

from rldk.core.stats.base import ScalarStatistic, Statistic
from rldk.core.stats.baseline import Baseline
from rldk.core.stats.correlation import RollingCorrelation, rank_correlation
from rldk.core.stats.cusum import Cusum
from rldk.core.stats.exponential import EwMoments
from rldk.core.stats.p2 import P2Quantile
from rldk.core.stats.page_hinkley import PageHinkley
from rldk.core.stats.pairs import RollingRegression
from rldk.core.stats.quantiles import RollingQuantiles
from rldk.core.stats.rolling import RollingMoments
from rldk.core.stats.run_length import RunLength
from rldk.core.stats.running import RunningMoments
from rldk.core.stats.slope import RollingSlope

__all__ = [
    "Baseline",
    "Cusum",
    "EwMoments",
    "P2Quantile",
    "PageHinkley",
    "RollingCorrelation",
    "RollingMoments",
    "RollingQuantiles",
    "RollingRegression",
    "RollingSlope",
    "RunLength",
    "RunningMoments",
    "ScalarStatistic",
    "Statistic",
    "rank_correlation",
]
