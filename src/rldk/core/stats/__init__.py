"""Streaming statistics: each value is taken once, in about a microsecond, and memory does not grow.

The library river has most of these, but importing it takes about a second and brings scipy, and its statistics have neither
missing values nor a `state_dict` to resume from.
"""

from __future__ import annotations

from rldk.core.stats.conditions import RollingShare, RunLength
from rldk.core.stats.moments import RunningMoments
from rldk.core.stats.pairs import RollingPairs, rank_correlation
from rldk.core.stats.slope import RollingSlope

__all__ = ["RollingPairs", "RollingShare", "RollingSlope", "RunLength", "RunningMoments", "rank_correlation"]
