"""Length bias: the correlations, what counts as a record, and where the detector fires."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.forensics import ComprehensivePPOForensics, LengthBiasTracker


def batch(rng: random.Random, bias: float, size: int = 16) -> list[dict[str, float]]:
    found = []
    for _ in range(size):
        length = rng.gauss(200, 40)
        found.append({"length": length, "reward": bias * (length - 200) / 40 + math.sqrt(1 - bias * bias) * rng.gauss(0, 1)})
    return found


def test_the_correlation_is_found_and_its_trend() -> None:
    rng = random.Random(0)
    tracker = LengthBiasTracker()
    for step in range(40):
        found = tracker.update(step, batch(rng, min(0.9, 0.03 * step)))
    assert found.sample_count == 256
    assert found.rank_correlation > 0.6
    assert found.linear_correlation > 0.6
    assert found.correlation_trend > 0
    assert found.correlation_trend_t > 3
    assert found.detected
    assert found.length_bias_score == pytest.approx(1 - (found.rank_correlation - 0.35) / 0.65)


def test_no_bias_is_no_bias() -> None:
    rng = random.Random(1)
    tracker = LengthBiasTracker()
    found = [tracker.update(step, batch(rng, 0.0)) for step in range(100)]
    assert not any(metrics.detected for metrics in found)
    assert found[-1].length_bias_score == 1.0


@pytest.mark.parametrize(
    "record",
    [
        {"length": 5, "reward": 1.0},
        {"response_length": "5", "reward": "1.0"},
        {"response": "12345", "reward": 1},
        {"text": "12345", "score": np.float32(1.0)},
        {"tokens": [1, 2, 3, 4, 5], "reward": 1.0},
        {"token_ids": np.arange(5), "reward": 1.0},
        {"length": 5, "response": "longer than five", "reward": True},
        (5, 1.0),
        ["12345", 1.0],
    ],
)
def test_records_are_read_in_many_shapes(record: Any) -> None:
    tracker = LengthBiasTracker()
    found = tracker.update(0, [record, {"length": 7, "reward": 2.0}])
    assert (found.sample_count, found.mean_response_length, found.rank_correlation) == (2, 6.0, 1.0)


def test_a_record_that_says_too_little_is_left_out() -> None:
    found = LengthBiasTracker().update(
        0, [{"length": 5}, {"reward": 1.0}, {"length": None, "reward": None}, {"length": math.inf, "reward": 1.0}]
    )
    assert found.sample_count == 0
    assert math.isnan(found.rank_correlation)


def test_one_record_alone_will_do() -> None:
    assert LengthBiasTracker().update(0, {"length": 5, "reward": 1.0}).sample_count == 1


@pytest.mark.parametrize("wrong", ["text", 5, [5], [("a", 1, 2)]])
def test_what_is_no_record_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="response_data"):
        LengthBiasTracker().update(0, wrong)


@pytest.mark.parametrize("reward", [1.0, 0.0])
def test_a_constant_reward_has_no_correlation(reward: float) -> None:
    found = LengthBiasTracker().update(0, [{"length": length, "reward": reward} for length in range(64)])
    assert math.isnan(found.rank_correlation)
    assert math.isnan(found.length_bias_score)
    assert not found.detected


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-20, 20).map(lambda whole: whole / 4)), min_size=3, max_size=120))
def test_correlations_are_those_of_scipy_over_the_window(pairs: list[tuple[int, float]]) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    tracker = LengthBiasTracker(sample_window=40)
    for step, (length, reward) in enumerate(pairs):
        found = tracker.update(step, {"length": length, "reward": reward})
    lengths, rewards = zip(*pairs[-40:], strict=True)
    if len(set(lengths)) == 1 or len(set(rewards)) == 1:
        assert math.isnan(found.rank_correlation)
    else:
        assert found.rank_correlation == pytest.approx(scipy_stats.spearmanr(lengths, rewards).statistic, abs=1e-9)
        assert found.linear_correlation == pytest.approx(scipy_stats.pearsonr(lengths, rewards).statistic, abs=1e-7)


def fired(forensics: ComprehensivePPOForensics, biases: list[float], seed: int = 3) -> list[int]:
    rng = random.Random(seed)
    for step, bias in enumerate(biases):
        forensics.update(step, response_data=batch(rng, bias, 64))
    return [anomaly["index"] for anomaly in forensics.get_anomalies() if anomaly["type"] == "length_bias"]


def test_the_detector_fires_where_the_bias_has_lasted() -> None:
    (index,) = fired(ComprehensivePPOForensics(), [0.0] * 30 + [0.8] * 30)
    assert 33 <= index <= 50, "exactly where is for the tests of the detector to say"


def test_the_detector_is_silent_on_no_bias_and_on_a_negative_one() -> None:
    for seed in range(5):
        assert fired(ComprehensivePPOForensics(), [0.0] * 100, seed) == []
        assert fired(ComprehensivePPOForensics(), [-0.8] * 40, seed) == []


def test_the_threshold_is_the_users() -> None:
    assert fired(ComprehensivePPOForensics(length_bias_threshold=0.9), [0.8] * 100) == []
    assert fired(ComprehensivePPOForensics(length_bias_threshold=0.1), [0.5] * 100) != []
    assert fired(ComprehensivePPOForensics(enable_length_bias_detection=False), [0.8] * 40) == []


def test_a_correlation_that_the_run_logs_is_followed_by_itself() -> None:
    forensics = ComprehensivePPOForensics()
    for step in range(20):
        found = forensics.update(step, length_reward_corr=0.8)
    assert found.length_bias_metrics is not None
    assert found.length_bias_metrics.rank_correlation == 0.8
    assert found.length_bias_metrics.detected
    assert [anomaly["severity"] for anomaly in forensics.get_anomalies()] == ["warning"]
    assert forensics.get_length_bias_analysis()["recommendations"]
