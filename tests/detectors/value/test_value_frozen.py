"""A value function that does not learn: by its weights, or by its loss."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.value.value_divergence import ValueDivergence
from rldk.detectors.value.value_frozen import ValueFrozen

ROWS = 120
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def flat(value: float) -> np.ndarray:
    return np.full(ROWS, value)


def test_weights_that_never_change(told):
    assert told(ValueFrozen(), {"weight_change_value": flat(0.0)}) == [(7, "warning", "still")]
    assert told(ValueFrozen(), {"value_trainable_params": flat(0.0)}) == [(5, "warning", "still")]
    assert told(ValueFrozen(), {"weight_change_value": np.where(AT < 3, 1e-3, 0.0)}) == []


REWARD = np.clip(AT / 40.0, 0.0, 1.0)
RISES = {"reward_mean": REWARD + noise(0.05), "kl_mean": 0.1 + noise(0.01, 1)}


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_that_rises_with_the_returns_and_does_not_fall(told, seed):
    untrained = 0.1 + 0.5 * REWARD**2 + 0.02 * noise(1.0, seed)  # of a constant prediction
    ((row, severity, clause),) = told(ValueFrozen(), {**RISES, "value_loss": untrained})
    assert (severity, clause) == ("warning", "loss_stays") and 45 <= row <= 70


@pytest.mark.parametrize("end", [0.0, 0.5, 1.1])
def test_a_loss_that_falls_or_returns_to_its_start_is_silent(told, end):
    learnt = 0.2 * (end + (1.0 - end) * np.exp(-AT / 20.0)) + 0.1 * np.exp(-(((AT - 25) / 8.0) ** 2)) + noise(0.005)
    assert told(ValueFrozen(), {**RISES, "value_loss": learnt}) == []


def test_what_else_makes_the_loss_grow(told):
    grows = {"value_loss": 0.1 + 0.02 * AT}
    assert told(ValueFrozen(), {"reward_mean": RISES["reward_mean"], **grows}) == []  # a control task: returns grow
    offset = np.where(AT < 60, 0.0, 5.0)
    changed = {**RISES, "reward_mean": REWARD + noise(0.05) + offset, "entropy_mean": 1.0 + noise(0.01, 2)}
    relearnt = 0.1 + 10.0 * (AT >= 60) * np.exp(-(AT - 60) / 8.0) + noise(0.005, 3)
    assert told(ValueFrozen(), {**changed, "value_loss": relearnt}) == []


def test_values_that_are_one_number_for_all(told):
    assert told(ValueFrozen(), {"explained_variance": noise(1e-5)}) == [(28, "warning", "constant")]
    assert told(ValueFrozen(), {"explained_variance": np.where(AT == 0, 0.1, noise(1e-5))}) == []
    assert told(ValueFrozen(), {"explained_variance": noise(1e-2)}) == []


@pytest.mark.parametrize("seed", range(3))
def test_rewards_of_0_and_1_vary_most_in_the_middle(told, where, seed):
    """The loss of a good value function is a share of p (1 - p), which grows eightfold from the first successes on."""
    right = np.clip(0.03 + AT / 150.0, 0.0, 0.55)
    columns = {
        "reward_mean": np.clip(right + 0.02 * noise(1.0, seed), 0.0, 1.0), "kl_mean": 0.05 + noise(0.005, 1),
        "value_loss": 0.4 * right * (1.0 - right) + 0.002 * noise(1.0, seed + 5),
    }  # fmt: skip
    assert told(ValueFrozen(), columns) == []
    assert where(ValueDivergence(), columns) == []
