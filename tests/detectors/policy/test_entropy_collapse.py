"""An entropy that is gone while the reward has nothing to show for it."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.entropy_collapse import EntropyCollapse

ROWS = 300
AT = np.arange(ROWS)
GONE = np.where(AT < 150, 1.0, 0.02)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def test_a_low_entropy_throughout_with_a_good_reward_is_silent(where):
    low = {"entropy_mean": 0.02 * np.exp(noise(0.5)), "reward_mean": 0.8 + noise(0.05)}
    assert where(EntropyCollapse(), low) == []


def test_a_tiny_entropy_from_the_start_has_nothing_to_lose(where):
    assert where(EntropyCollapse(), {"entropy_mean": np.where(AT < 100, 0.004, 0.0001)}) == []


def test_an_entropy_that_falls_as_the_reward_rises_is_silent(where):
    learning = {"entropy_mean": np.maximum(np.exp(-AT / 30.0), 0.01), "reward_mean": np.clip(AT / 200.0, 0.05, 0.9) + noise(0.02)}
    assert where(EntropyCollapse(), learning) == []


@pytest.mark.parametrize("share", [0.5, 0.15])
def test_a_fall_to_more_than_a_tenth_is_silent(where, share):
    assert where(EntropyCollapse(), {"entropy_mean": np.where(AT < 150, 1.0, share) + noise(0.01)}) == []


def test_an_entropy_that_falls_in_supervised_training_is_silent(where):
    learning = {"entropy_mean": np.maximum(6.0 * np.exp(-AT / 30.0), 0.1), "token_accuracy": np.clip(AT / 200.0, 0.0, 0.9)}
    assert where(EntropyCollapse(), learning) == []
    with_reward = {**learning, "reward_mean": 0.9 - AT / 400.0}
    assert where(EntropyCollapse(), with_reward) != []


def test_without_a_reward_it_is_a_warning(judge):
    (anomaly,) = judge(EntropyCollapse(), {"entropy_mean": np.where((AT >= 150) & (AT < 200), 0.02, 1.0)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (161, "warning", 152, 211)
    assert anomaly.message.startswith("Entropy fell from 1 to 0.02 nats a token")


def test_with_a_reward_no_better_than_at_the_start_it_is_a_warning(where):
    assert where(EntropyCollapse(), {"entropy_mean": GONE, "reward_mean": 0.4 + noise(0.02)}) == [(161, "warning")]


def test_it_is_critical_once_the_reward_has_fallen(where):
    reward = np.where(AT < 150, 0.8, np.where(AT < 200, 0.6, 0.1)) + noise(0.01)
    assert where(EntropyCollapse(), {"entropy_mean": GONE, "reward_mean": reward}) == [(161, "warning"), (202, "critical")]


def test_the_share_can_be_set(where):
    assert where(EntropyCollapse(share=0.01), {"entropy_mean": GONE}) == []


def test_an_entropy_at_rest_that_falls_suddenly_is_a_warning_whatever_the_reward_does(judge):
    rising = np.clip(AT / 400.0, 0.05, 0.9) + noise(0.005)
    entropy = np.where((AT >= 200) & (AT < 260), 0.02, 1.0)
    (anomaly,) = judge(EntropyCollapse(), {"entropy_mean": entropy, "reward_mean": rising})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (211, "warning", 202, 271)
    assert "it was at rest at 1" in anomaly.message


def test_a_sudden_fall_stays_raised_until_the_entropy_is_back(judge):
    rows = np.arange(600)
    entropy = np.where((rows < 200) | (rows >= 500), 1.0, 0.02)
    (anomaly,) = judge(EntropyCollapse(), {"entropy_mean": entropy, "reward_mean": np.minimum(0.2 + rows / 200.0, 0.9)})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (211, "warning", 511)
