"""Is it the length that is rewarded?"""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

from rldk.core.stats.base import check_number, check_window
from rldk.core.stats.correlation import RollingCorrelation, rank_correlation
from rldk.judge.scores.formulas import clip
from rldk.judge.trackers.length_bias_metrics import LengthBiasMetrics, make_length_metrics
from rldk.judge.trackers.length_records import length_and_reward
from rldk.judge.trackers.snapshot import number
from rldk.judge.trackers.tracker import Tracker
from rldk.judge.trackers.trend import Trend

__all__ = ["ENOUGH", "LengthBiasMetrics", "LengthBiasTracker"]

ENOUGH = 32  # samples from which on a rank correlation of 0.35 is twice its standard error


class Samples(RollingCorrelation):
    """The latest pairs of length and reward."""

    __slots__ = ()

    def rank(self) -> float:
        """Spearman's correlation of the window."""
        return rank_correlation(self._xs, self._ys)

    @property
    def mean_length(self) -> float:
        """Mean length of the responses in the window."""
        return self._mx if self._xs else nan


class LengthBiasTracker(Tracker):
    """Follows the correlation of response length with reward over the latest responses.

    A run that logs the correlation itself (`length_reward_corr`) is followed by that.

    Args:
        length_bias_threshold: rank correlation from which on the reward counts as biased.
        sample_window: how many responses the correlation reaches back.
        window_size: how many correlations their trend reaches back.
    """

    __slots__ = ("_rank", "_samples", "_trend", "length_bias_threshold", "sample_window", "window_size")
    parameters = ("length_bias_threshold", "sample_window", "window_size")
    length_bias_threshold: float
    sample_window: int
    window_size: int
    _rank: float
    _samples: Samples
    _trend: Trend

    def __init__(self, length_bias_threshold: float = 0.35, sample_window: int = 256, window_size: int = 100) -> None:
        self.length_bias_threshold = check_number("length_bias_threshold", length_bias_threshold, least=0.0, most=1.0)
        self.sample_window = check_window("sample_window", sample_window, least=ENOUGH)
        self.window_size = check_window("window_size", window_size, least=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._rank = nan
        self._samples = Samples(self.sample_window)
        self._trend = Trend(self.window_size)

    def update(self, step: int, response_data: Any = None, length_reward_corr: float | None = None) -> LengthBiasMetrics:
        """Take the responses of a step, or the correlation that was logged."""
        self.observe(step, response_data, number("length_reward_corr", length_reward_corr))
        return self.metrics()

    def observe(self, step: int, response_data: Any, logged: float = nan) -> float:
        """As `update`, without the record: the rank correlation, NaN while it rests on too few responses."""
        self.step = step
        if response_data is not None:
            for length, reward in length_and_reward(response_data):
                self._samples.update(length, reward)
                self.values += 1
            self._rank = self._samples.rank()
        if logged == logged:
            self._rank = logged
        elif response_data is None or self._samples.count < ENOUGH:
            return nan
        if isfinite(self._rank):
            self._trend.add(self._rank)
        return self._rank

    def metrics(self) -> LengthBiasMetrics:
        """What is known now, as a record that later updates do not change."""
        samples, rank, threshold = self._samples, self._rank, self.length_bias_threshold
        _, _, slope, t, _ = self._trend.line()
        judged = self._trend.count > 0
        return make_length_metrics(
            self.step, samples.count, rank, samples.correlation, slope, t, samples.mean_length, threshold,
            judged and rank >= threshold,
            1.0 - clip((rank - threshold) / (1.0 - threshold if threshold < 1.0 else 1.0)) if judged else nan,
        )  # fmt: skip
