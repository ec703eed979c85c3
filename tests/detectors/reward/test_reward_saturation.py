"""Nothing is left to learn: the reward is at its ceiling and all responses score alike."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.reward_saturation import RewardSaturation

ROWS = 300
AT = np.arange(ROWS)
REWARD = np.clip(0.3 + AT / 150.0, 0.0, 1.0)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


@pytest.mark.parametrize("spread", [0.2, 0.05, 0.01])
def test_a_spread_that_shrinks_and_lasts_is_silent(where, spread):
    assert where(RewardSaturation(), {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, spread)}) == []


def test_a_solved_task_with_a_steady_kl_and_a_little_spread_is_silent(where):
    steady = {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, 0.004), "kl_mean": 0.1 + noise(0.01)}
    assert where(RewardSaturation(), steady) == []


def test_a_spread_of_nothing_from_the_start_is_anothers(where):
    assert where(RewardSaturation(), {"reward_mean": np.full(ROWS, 0.5), "reward_std": np.zeros(ROWS)}) == []


def test_a_low_reward_without_spread_is_anothers(where):
    assert (
        where(RewardSaturation(), {"reward_mean": np.where(AT < 105, 0.5, 0.0), "reward_std": np.where(AT < 105, 0.4, 0.0)}) == []
    )


def test_all_alike_for_long(judge):
    spread = np.where((AT >= 105) & (AT < 200), 0.0, 0.4)
    (anomaly,) = judge(RewardSaturation(), {"reward_mean": REWARD, "reward_std": spread})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (138, "warning", 136, 206)
    assert "nothing is left to learn" in anomaly.message


def test_nearly_alike_while_the_kl_grows(judge):
    kl = np.where(AT < 110, 0.1, 0.1 * 1.02 ** (AT - 110.0))
    (anomaly,) = judge(RewardSaturation(), {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, 0.004), "kl_mean": kl})
    assert (anomaly.index, anomaly.severity) == (150, "warning")
    assert "while KL grew from 0.1 to" in anomaly.message


def test_alike_for_less_than_the_rows_asked_for_is_silent(where):
    assert where(RewardSaturation(), {"reward_mean": REWARD, "reward_std": np.where((AT >= 105) & (AT < 130), 0.0, 0.4)}) == []
    assert where(
        RewardSaturation(rows=10), {"reward_mean": REWARD, "reward_std": np.where((AT >= 105) & (AT < 130), 0.0, 0.4)}
    ) == [(118, "warning")]
