"""What is known of the advantages after an update."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from rldk.judge.scores.formulas import named
from rldk.judge.trackers.snapshot import Snapshot, quick

__all__ = ["AdvantageStatisticsMetrics", "make_advantage_metrics"]


@dataclass(frozen=True, slots=True)
class AdvantageStatisticsMetrics(Snapshot):
    """The distribution of the advantages. What was not logged is NaN.

    Attributes:
        advantage_mean: the value that was logged last, or that of the last sample; so are the others down to the kurtosis.
        advantage_bias: distance of the mean from zero, in units of the spread.
        advantage_scale_stability: 1 while the spread varies about its trend by up to a factor of 2, or what the run itself
            began with.
        advantage_normalization_health: for advantages that were recognised as whitened, the share of the window in which
            they still have mean 0 and spread 1.
        advantage_mean_trend: change of the mean from one value to the next, with its t value; `advantage_std_trend` the
            relative change of the spread.
        advantage_volatility: noise of the mean about its trend, in units of the spread.
        whitened: whether mean 0 and spread 1 hold by construction. They carry no signal then: bias, scale, volatility and
            the parts of the scores that rest on them are NaN.
    """

    step: int = 0
    advantage_mean: float = nan
    advantage_std: float = nan
    advantage_min: float = nan
    advantage_max: float = nan
    advantage_median: float = nan
    advantage_p5: float = nan
    advantage_p25: float = nan
    advantage_p75: float = nan
    advantage_p95: float = nan
    advantage_skewness: float = nan
    advantage_kurtosis: float = nan
    advantage_bias: float = nan
    advantage_scale_stability: float = nan
    advantage_normalization_health: float = nan
    advantage_mean_trend: float = nan
    advantage_mean_trend_t: float = nan
    advantage_std_trend: float = nan
    advantage_volatility: float = nan
    advantage_bias_risk: float = nan
    advantage_scale_risk: float = nan
    advantage_distribution_risk: float = nan
    whitened: bool = False
    advantage_health_score: float = nan
    advantage_quality_score: float = nan
    _health: tuple[float, ...] = ()
    _quality: tuple[float, ...] = ()

    @property
    def advantage_percentiles(self) -> dict[str, float]:
        """The percentiles that are known, `p5` to `p95`."""
        found = {
            "p5": self.advantage_p5,
            "p25": self.advantage_p25,
            "p50": self.advantage_median,
            "p75": self.advantage_p75,
            "p95": self.advantage_p95,
        }
        return {name: value for name, value in found.items() if value == value}

    @property
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The parts of the two scores, by name."""
        return {
            "advantage_health": named("advantage_health", self._health),
            "advantage_quality": named("advantage_quality", self._quality),
        }


make_advantage_metrics = quick(AdvantageStatisticsMetrics)
