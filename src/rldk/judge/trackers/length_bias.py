"""Length bias: whether longer responses are rewarded more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.jsonio import to_number
from rldk.core.stats.base import check_number, check_window
from rldk.core.stats.pairs import RollingPairs
from rldk.core.stats.slope import RollingSlope
from rldk.judge.scores.formulas import clip, named
from rldk.judge.trackers.tracker import Snapshot, Tracker, number

__all__ = ["LengthBiasMetrics", "LengthBiasTracker", "length_and_reward"]

ENOUGH = 32  # samples from which a rank correlation of 0.35 is twice its standard error
LENGTHS = ("length", "response_length", "num_tokens", "tokens", "completion_length", "response_tokens", "token_ids")
TEXTS = ("response", "response_text", "text", "completion", "output")
REWARDS = ("reward", "score", "reward_mean", "response_reward")


@dataclass(slots=True)
class LengthBiasMetrics(Snapshot):
    """Whether longer responses are rewarded more. What was not logged is NaN.

    Attributes:
        sample_count: responses in the window of samples.
        rank_correlation: Spearman's correlation of length and reward, `linear_correlation` Pearson's.
        correlation_trend: change of the rank correlation from one update to the next, with its t value.
        detected: whether the rank correlation rests on enough samples and is at or above `threshold`.
        length_bias_score: 1 up to the threshold, and falling to 0 for a reward that is length alone.
    """

    step: int = 0
    sample_count: int = 0
    rank_correlation: float = nan
    linear_correlation: float = nan
    correlation_trend: float = nan
    correlation_trend_t: float = nan
    mean_response_length: float = nan
    threshold: float = nan
    detected: bool = False
    length_bias_score: float = nan

    @property
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The one part of the score, by name."""
        return {"length_bias": named("length_bias", (self.length_bias_score,))}


class LengthBiasTracker(Tracker):
    """Follows the correlation of response length with reward over the latest responses.

    A run that logs the correlation itself (`length_reward_corr`) is followed by that.

    Args:
        length_bias_threshold: rank correlation from which the reward counts as biased.
        sample_window: how many responses the correlation reaches back.
        window_size: how many correlations their trend reaches back.
    """

    __slots__ = ("_rank", "_samples", "_trend", "length_bias_threshold", "sample_window", "window_size")
    parameters = ("length_bias_threshold", "sample_window", "window_size")
    length_bias_threshold: float
    sample_window: int
    window_size: int
    _rank: float
    _samples: RollingPairs
    _trend: RollingSlope

    def __init__(self, length_bias_threshold: float = 0.35, sample_window: int = 256, window_size: int = 100) -> None:
        self.length_bias_threshold = check_number("length_bias_threshold", length_bias_threshold, minimum=0.0, maximum=1.0)
        self.sample_window = check_window("sample_window", sample_window, minimum=ENOUGH)
        self.window_size = check_window("window_size", window_size, minimum=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._rank = nan
        self._samples = RollingPairs(self.sample_window)
        self._trend = RollingSlope(self.window_size)

    def update(self, step: int, response_data: Any = None, length_reward_corr: float | None = None) -> LengthBiasMetrics:
        """Take the responses of a step, or the correlation that was logged."""
        self.take_responses(step, response_data, number("length_reward_corr", length_reward_corr))
        return self.metrics()

    def observe(self, step: int, metrics: Mapping[str, float]) -> bool:
        if "length_reward_corr" not in metrics:
            return False
        self.take_responses(step, None, metrics["length_reward_corr"])
        return True

    def take_responses(self, step: int, response_data: Any, logged: float = nan) -> float:
        """Take the responses of a step. Returns the rank correlation, NaN while there are too few responses for one."""
        self.step = step
        if response_data is not None:
            take, before = self._samples.update, self.values
            for self.values, (length, reward) in enumerate(length_and_reward(response_data), before + 1):
                take(length, reward)
            self._rank = self._samples.rank_correlation
        if logged == logged:
            self._rank = logged
        elif response_data is None or self._samples.count < ENOUGH:
            return nan
        if isfinite(self._rank):
            self._trend.update(self._rank)
        return self._rank

    def metrics(self) -> LengthBiasMetrics:
        samples, rank, threshold = self._samples, self._rank, self.length_bias_threshold
        _, _, slope, t, _ = self._trend.line()
        judged = self._trend.count > 0
        return LengthBiasMetrics(
            self.step, samples.count, rank, samples.correlation, slope, t, samples.mean_x, threshold,
            judged and rank >= threshold,
            1.0 - clip((rank - threshold) / (1.0 - threshold if threshold < 1.0 else 1.0)) if judged else nan,
        )  # fmt: skip


def length_and_reward(records: Any) -> Iterator[tuple[float, float]]:
    """Length and reward of each record; NaN for what a record does not say.

    A record is a mapping with a length (`length`, `response_length`, `tokens` …) or a text (`response`, `text` …, measured
    in characters) and a `reward` or `score`; or a pair of these. One record alone will do.
    """
    if isinstance(records, Mapping):
        records = (records,)
    if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
        raise UsageError(f"Expected `response_data` to be records of response and reward, got {records!r:.80}.")
    for record in records:
        if type(record) is tuple and len(record) == 2 and type(record[0]) is type(record[1]) is float:
            yield record  # as the probes give them, by the hundred
            continue
        if isinstance(record, Mapping):
            length, reward = _length_of(record), _first(record, REWARDS)
        elif isinstance(record, (tuple, list)) and len(record) == 2:
            length, reward = _size(record[0]), record[1]
        else:
            raise UsageError(
                f"Expected a record of `response_data` to be a mapping with a length or a text, and a reward, got {record!r:.80}."
            )
        yield length, _number(reward)


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _length_of(record: Mapping[str, Any]) -> float:
    stated = _first(record, LENGTHS)
    number = _number(stated)
    return number if number == number else _size(_first(record, TEXTS) if stated is None else stated)


def _size(value: Any) -> float:
    """A text or a list of tokens by its length, a number as it is."""
    if isinstance(value, (str, bytes, list, tuple)):
        return float(len(value))
    number = _number(value)
    return float(len(value)) if number != number and hasattr(value, "__len__") else number


def _number(value: Any) -> float:
    number = to_number(value)
    return nan if number is None else number
