"""The shape of the advantages: signs and middle, skewness, kurtosis; whitening leaves all of them as they are."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.advantages.advantage_distribution_anomaly import AdvantageDistribution
from rldk.detectors.advantages.advantage_kurtosis_anomaly import AdvantageKurtosis
from rldk.detectors.advantages.advantage_skewness_anomaly import AdvantageSkewness

ROWS = 300
AT = np.arange(ROWS)
LATE = AT >= 100


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def batch(shift: np.ndarray | float = 0.0, middle: np.ndarray | float = 1.0) -> dict[str, np.ndarray]:
    return {
        "advantage_min": -4.0 + noise(0.4) + shift,
        "advantage_max": 4.0 + noise(0.4, 1) + shift,
        "advantage_p5": -1.6 * middle + noise(0.01, 2),
        "advantage_p95": 1.6 * middle + noise(0.01, 3),
    }


def test_an_ordinary_batch_is_silent(where):
    assert where(AdvantageDistribution(), batch()) == []


def test_a_middle_that_is_gone(judge):
    (anomaly,) = judge(AdvantageDistribution(), batch(middle=np.where(LATE & (AT < 200), 0.01, 1.0)))
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (121, "warning", 102, 206)


def test_a_middle_that_is_gone_since_nearly_all_succeed_is_silent(where):
    reward = np.clip(AT / 100.0, 0.1, 0.99) + noise(0.005)
    assert where(AdvantageDistribution(), {**batch(middle=np.where(LATE, 0.01, 1.0)), "reward_mean": reward}) == []


def test_all_of_one_sign(where):
    assert where(AdvantageDistribution(), batch(shift=np.where(LATE, 9.0, 0.0))) == [(121, "warning")]
    assert where(AdvantageDistribution(), batch(shift=np.where(LATE, -9.0, 0.0))) == [(121, "warning")]


def test_one_sign_of_an_estimator_without_baseline_is_silent(where):
    reward = np.where(LATE, 9.0, 0.3) + noise(0.1)
    mean = {"advantage_mean": reward, "reward_mean": reward}
    assert where(AdvantageDistribution(), {**batch(shift=np.where(LATE, 9.0, 0.0)), **mean}) == []


@pytest.mark.parametrize("seed", range(4))
def test_ordinary_moments_are_silent(where, seed):
    moments = {"advantage_skewness": 2.0 + noise(1.0, seed), "advantage_kurtosis": 8.0 + noise(4.0, seed)}
    assert where(AdvantageSkewness(), moments) == where(AdvantageKurtosis(), moments) == []


def test_a_sparse_reward_is_skewed_from_the_start(where):
    assert where(AdvantageSkewness(), {"advantage_skewness": 10.0 + noise(1.5)}) == []
    assert where(AdvantageKurtosis(), {"advantage_kurtosis": 100.0 + noise(20.0)}) == []


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_one_sided_tail_is_skewness_only(judge, where, side):
    skewness = noise(0.5) + side * np.where(LATE & (AT < 200), 15.0, 0.0)
    moments = {"advantage_skewness": skewness, "advantage_kurtosis": 1.0 + skewness**2}
    (anomaly,) = judge(AdvantageSkewness(), moments)
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (121, "warning", 206)
    assert where(AdvantageKurtosis(), moments) == []


def test_two_sided_tails_are_kurtosis_only(where):
    moments = {"advantage_skewness": np.where(LATE, 9.0, 0.5), "advantage_kurtosis": np.where(LATE, 400.0, 2.0)}
    assert where(AdvantageKurtosis(), moments) == [(121, "warning")]
    assert where(AdvantageSkewness(), moments) == []


def test_a_task_that_is_nearly_solved_has_outliers_by_right(where):
    solved = {"reward_mean": np.clip(AT / 100.0, 0.1, 0.99) + noise(0.005)}
    assert where(AdvantageSkewness(), {"advantage_skewness": np.where(LATE, -12.0, 0.0), **solved}) == []
    assert where(AdvantageKurtosis(), {"advantage_kurtosis": np.where(LATE, 150.0, 0.0), **solved}) == []
