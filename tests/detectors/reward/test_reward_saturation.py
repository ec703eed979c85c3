"""Nothing is left to learn: a note where the task is solved, a warning where the policy drifts on."""

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
def test_a_spread_that_shrinks_and_lasts_is_silent(notes, spread):
    assert notes(RewardSaturation(), {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, spread)}) == []


def test_a_steady_kl_and_a_little_spread_are_silent(notes):
    steady = {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, 0.004), "kl_mean": 0.1 + noise(0.01)}
    assert notes(RewardSaturation(), steady) == []


def test_a_spread_of_nothing_from_the_start_is_anothers(notes):
    assert notes(RewardSaturation(), {"reward_mean": np.full(ROWS, 0.5), "reward_std": np.zeros(ROWS)}) == []


def test_a_low_reward_without_spread_is_anothers(notes):
    low = {"reward_mean": np.where(AT < 105, 0.5, 0.0), "reward_std": np.where(AT < 105, 0.4, 0.0)}
    assert notes(RewardSaturation(), low) == []


@pytest.mark.parametrize("kl", [{}, {"kl_mean": 0.1 + noise(0.01)}], ids=["no KL", "a steady KL"])
def test_a_solved_task_is_a_note(notes, kl):
    spread = np.where((AT >= 105) & (AT < 200), 0.0, 0.4)
    assert notes(RewardSaturation(), {"reward_mean": REWARD, "reward_std": spread, **kl}) == [(136, "solved")]


def test_nearly_alike_while_the_kl_grows(judge):
    kl = np.where(AT < 110, 0.1, 0.1 * 1.02 ** (AT - 110.0))
    columns = {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, 0.004), "kl_mean": kl}
    (anomaly,) = judge(RewardSaturation(), columns, {"kl_mean": "token"})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (150, "warning", "drifting")
    assert "while KL grew from 0.1 to" in anomaly.message and "nothing is left to learn" in anomaly.message


def test_a_small_kl_that_doubles_on_a_solved_task_is_no_drift(judge):
    columns = {"reward_mean": REWARD, "reward_std": np.where(AT < 105, 0.4, 0.004), "kl_mean": np.where(AT < 150, 0.02, 0.08)}
    assert judge(RewardSaturation(), columns, {"kl_mean": "token"}) == []


def test_alike_for_less_than_the_rows_asked_for_is_silent(notes):
    columns = {"reward_mean": REWARD, "reward_std": np.where((AT >= 105) & (AT < 130), 0.0, 0.4)}
    assert notes(RewardSaturation(), columns) == []
    assert notes(RewardSaturation(rows=10), columns) == [(116, "solved")]


@pytest.mark.parametrize(
    ("mean", "spread", "found"),
    [
        (0.993, 0.008, ["pressed"]),
        (0.993, 0.083, []),  # right or wrong
        (0.6, 0.01, []),
    ],
)
def test_rewards_at_the_end_of_their_range_from_the_first_row(told, mean, spread, found):
    rows = {"reward_mean": mean + noise(0.001), "reward_std": np.full(ROWS, spread)}
    assert [clause for *_, clause in told(RewardSaturation(), rows)] == found


def test_rewards_that_rise_to_the_end_of_their_range_are_not_pressed(told):
    rows = {"reward_mean": np.clip(0.5 + AT / 100.0, 0.0, 0.99) + noise(0.001), "reward_std": np.full(ROWS, 0.008)}
    assert told(RewardSaturation(), rows) == []
