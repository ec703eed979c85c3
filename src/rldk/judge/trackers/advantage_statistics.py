"""The distribution of the advantages: centred, of one scale, without wild tails, and with something to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, nan
from typing import Any

from rldk.core.stats.base import check_window
from rldk.core.stats.conditions import RollingShare
from rldk.core.stats.slope import RollingSlope
from rldk.functional.advantages import describe
from rldk.judge.scores.formulas import combine, named, within
from rldk.judge.trackers.norm import DECADE, Norm
from rldk.judge.trackers.tracker import Snapshot, Tracker, number

__all__ = ["AdvantageStatisticsMetrics", "AdvantageStatisticsTracker"]

NAMES = tuple(
    f"advantage_{name}" for name in ("mean", "std", "min", "max", "median", "p5", "p25", "p75", "p95", "skewness", "kurtosis")
)
PLACES = tuple(enumerate(NAMES))
WHITE_MEAN, WHITE_STD = 0.05, 0.1  # how near to 0 and 1 whitened advantages are, masks and minibatches included
WHITE_SHARE, WHITE_COUNT = 0.9, 5
BIAS, SKEWNESS, KURTOSIS, TAIL = 0.5, 3.0, 20.0, 20.0  # what healthy runs keep, sparse rewards included
FADED = 2.0  # decades by which the spread may shrink before there is little left to learn from
NEW = 0.2
FEW = 3  # values needed before there is a statement


@dataclass(slots=True)
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
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The parts of the two scores, by name."""
        return {
            "advantage_health": named("advantage_health", self._health),
            "advantage_quality": named("advantage_quality", self._quality),
        }


class AdvantageStatisticsTracker(Tracker):
    """Follows the advantages of a run, in constant time and bounded memory.

    Advantages whose mean is 0 and whose spread is 1 in nine of ten updates have been whitened: both hold by construction
    and say nothing. They are then judged by their shape alone: skewness, kurtosis and extremes.

    Args:
        window_size: how many values the rolling statistics reach back.
    """

    __slots__ = ("_kurtosis", "_last", "_mean", "_skewness", "_spread", "_tail", "_was_white", "_white", "window_size")
    parameters = ("window_size",)
    window_size: int
    _last: list[float]
    _skewness: float
    _kurtosis: float
    _tail: float
    _mean: RollingSlope
    _spread: Norm
    _white: RollingShare
    _was_white: bool

    def __init__(self, window_size: int = 100) -> None:
        self.window_size = check_window("window_size", window_size, minimum=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._last = [nan] * len(NAMES)
        self._skewness = self._kurtosis = self._tail = nan
        self._mean = RollingSlope(self.window_size)
        self._spread = Norm(self.window_size)
        self._white = RollingShare(self.window_size)
        self._was_white = False

    def update(
        self,
        step: int,
        advantage_mean: float | None = None,
        advantage_std: float | None = None,
        advantage_min: float | None = None,
        advantage_max: float | None = None,
        advantage_median: float | None = None,
        advantage_samples: Any = None,
        **others: float | None,
    ) -> AdvantageStatisticsMetrics:
        """Take what was logged at a step, or a sample of raw advantages, which takes precedence.

        `others` are `advantage_p5`, `_p25`, `_p75`, `_p95`, `_skewness` and `_kurtosis`.
        """
        given = dict(zip(NAMES, (advantage_mean, advantage_std, advantage_min, advantage_max, advantage_median), strict=False))
        metrics = {name: number(name, value) for name, value in {**given, **others}.items()}
        if advantage_samples is not None:
            metrics.update(describe(advantage_samples, "advantage_samples"))
        self._take(step, metrics)
        return self.metrics()

    def observe(self, step: int, metrics: Mapping[str, float]) -> bool:
        if not ("advantage_mean" in metrics or "advantage_std" in metrics or "advantage_max" in metrics):
            return False
        self._take(step, metrics)
        return True

    def _take(self, step: int, metrics: Mapping[str, float]) -> None:
        self.step = step
        get = metrics.get
        mean, std = get("advantage_mean", nan), get("advantage_std", nan)
        low, high = get("advantage_min", nan), get("advantage_max", nan)
        if mean == mean:
            self.values += 1
            if -inf < mean < inf:
                self._mean.update(mean)
            if std == std:
                self._take_white(-WHITE_MEAN <= mean <= WHITE_MEAN and -WHITE_STD <= std - 1.0 <= WHITE_STD)
        spread = std if std == std else high - low
        if spread == spread:
            self._spread.update(spread)
        if "advantage_skewness" in metrics:
            self._skewness = _smooth(self._skewness, abs(metrics["advantage_skewness"]))
        if "advantage_kurtosis" in metrics:
            self._kurtosis = _smooth(self._kurtosis, metrics["advantage_kurtosis"])
        if std > 0.0 and high == high:
            self._tail = _smooth(self._tail, (mean - low if mean - low > high - mean else high - mean) / std)
        for place, name in PLACES:
            if name in metrics and (value := metrics[name]) == value:
                self._last[place] = value

    def _take_white(self, white: bool) -> None:
        share = self._white
        share.update(white)
        if white and not self._was_white and share.count >= 2 * WHITE_COUNT and share.share >= WHITE_SHARE:
            self._was_white = True

    def metrics(self) -> AdvantageStatisticsMetrics:
        last, spread = self._last, self._spread
        mean, noise, mean_slope, mean_t, _ = self._mean.line()
        _, spread_noise, spread_slope, _, _ = spread.trend.line()
        share = self._white.share
        whitened = self._white.count >= WHITE_COUNT and share >= WHITE_SHARE
        size = exp(spread.level) if spread.level == spread.level else nan
        bias = lasting = nan
        if not whitened and last[1] == last[1]:
            bias = abs(last[0]) / last[1] if last[1] > 0.0 else inf if last[0] else 0.0
            lasting = abs(mean) / size if self.values >= FEW else nan
        volatility = nan if whitened else noise / size
        stability = nan if whitened else within(spread_noise, spread.usual)
        tails = combine((within(self._skewness, SKEWNESS), within(self._kurtosis, KURTOSIS), within(self._tail, TAIL)))
        normalization = share if self._was_white else nan
        if last[1] == inf or abs(last[0]) == inf:
            health: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
        else:
            health = (within(lasting, BIAS), stability, normalization, tails)
        faded = (spread.base - spread.level) / DECADE - FADED if self.values >= FEW else nan
        alive = (10.0**-faded if faded > 0.0 else 1.0 if faded == faded else nan) * (1.0 - spread.dead())
        quality = (alive if not whitened else nan, within(volatility, 1.0), tails)
        return AdvantageStatisticsMetrics(
            self.step, last[0], last[1], last[2], last[3], last[4], last[5], last[6], last[7], last[8], last[9], last[10],
            bias, stability, normalization, mean_slope, mean_t, spread_slope, volatility,
            1.0 if bias == inf else bias / (1.0 + bias), 1.0 - stability, 1.0 - tails, whitened,
            combine(health), combine(quality), health, quality,
        )  # fmt: skip


def _smooth(old: float, value: float) -> float:
    """The exponentially weighted mean with one more value; one that is not finite changes nothing."""
    if value - value != 0.0:
        return old
    return value if old != old else old + NEW * (value - old)
