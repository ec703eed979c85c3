"""A value function that comes apart, or never came together."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.value.value_divergence import ValueDivergence
from rldk.detectors.value.value_unexplained import ValueUnexplained

ROWS = 400
AT = np.arange(ROWS)


def noise(sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


def grown(factor: float, seed: int = 0) -> np.ndarray:
    """A loss that falls to its floor, and from row 200 on grows within sixty rows."""
    return (0.3 + 0.7 * np.exp(-AT / 40.0)) * factor ** np.clip((AT - 200) / 60.0, 0.0, 1.0) * noise(0.2, seed)


# value_divergence


@pytest.mark.parametrize("seed", range(5))
def test_a_loss_that_falls_and_wavers_is_silent(where, seed):
    assert where(ValueDivergence(), {"value_loss": grown(2.0, seed)}) == []
    assert where(ValueDivergence(), {"value_loss": 9.5 * noise(0.5, seed)}) == []


def test_single_spikes_are_silent(where):
    loss = grown(1.0)
    loss[[50, 120, 121, 300]] = [80.0, 1e6, 40.0, 500.0]
    assert where(ValueDivergence(), {"value_loss": loss}) == []


def test_rewards_that_begin_late_are_silent(where):
    begun = np.where(AT < 60, 0.0, 1.0)
    loss = np.where(AT < 60, 1e-9, 0.3) * noise()
    assert where(ValueDivergence(), {"value_loss": loss, "reward_std": 0.6 * begun + 1e-9}) == []


def test_a_reward_whose_spread_grows_takes_its_loss_along(where):
    spread = np.where(AT < 100, 0.2, 1.0)
    assert where(ValueDivergence(), {"value_loss": 0.5 * spread * spread * 8.0, "reward_std": spread}) == []


def test_a_loss_that_grows_alone_warns(judge):
    (anomaly,) = judge(ValueDivergence(), {"value_loss": grown(24.0), "value_lr": np.full(ROWS, 1e-5)})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (259, "warning", None)
    assert anomaly.family == "value" and "learning rate (now 1e-05)" in anomaly.advice


def growing(rate: float = 0.03) -> np.ndarray:
    """A reward that begins to grow without bound at row 100."""
    return np.exp(rate * np.maximum(AT - 100, 0)) + np.random.default_rng(0).normal(0.0, 0.05, ROWS)


def test_values_that_lag_behind_a_growing_reward_are_a_note(told):
    reward = growing()
    loss = np.maximum(0.3 * (reward - 1.0) ** 2, 0.1) * noise(0.1)
    assert [said for _, *said in told(ValueDivergence(), {"value_loss": loss, "reward_mean": reward})] == [["note", "grown"]]


@pytest.mark.parametrize("offset", [0.0, 500.0])
def test_a_growing_reward_does_not_explain_a_loss_beyond_its_rise(where, offset):
    reward = growing()
    loss = np.maximum(3.0 * (reward - 1.0) ** 2, 0.1) * noise(0.1)
    assert where(ValueDivergence(), {"value_loss": loss, "reward_mean": reward + offset})[-1][1] == "critical"


def test_damage_beside_a_growing_reward_is_critical(where):
    reward = growing()
    loss = np.maximum(0.3 * (reward - 1.0) ** 2, 0.1) * noise(0.1)
    entropy = np.where(AT < 150, 1.5, 0.001)
    assert where(ValueDivergence(), {"value_loss": loss, "reward_mean": reward, "entropy_mean": entropy})[-1][1] == "critical"


def test_a_second_sign_makes_it_critical(where):
    columns = {"value_loss": grown(40.0), "explained_variance": np.where(AT < 220, 0.5, -2.0)}
    assert where(ValueDivergence(), columns) == [(251, "warning"), (259, "critical")]


def test_growth_by_orders_of_magnitude_is_critical(where):
    assert where(ValueDivergence(), {"value_loss": grown(1000.0)}) == [(230, "warning"), (248, "critical")]


def test_it_clears(judge):
    loss = np.where((AT >= 200) & (AT < 250), 8.0, 1.0)
    (anomaly,) = judge(ValueDivergence(), {"value_loss": loss})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (206, "warning", 261)


# value_unexplained


@pytest.mark.parametrize("seed", range(5))
def test_a_value_function_that_learns_is_silent(where, seed):
    explained = 0.6 - 1.6 * np.exp(-AT / 60.0) + np.random.default_rng(seed).normal(0.0, 0.2, ROWS)
    assert where(ValueUnexplained(), {"explained_variance": explained}) == []


@pytest.mark.parametrize("seed", range(5))
def test_one_that_learns_slowly_is_silent(where, seed):
    explained = np.minimum(-1.0 + 0.004 * AT, 0.3) + np.random.default_rng(seed).normal(0.0, 0.02, ROWS)
    assert where(ValueUnexplained(), {"explained_variance": explained}) == []


def test_one_that_never_learns(judge):
    explained = -0.1 + np.random.default_rng(1).normal(0.0, 0.02, ROWS)
    (anomaly,) = judge(ValueUnexplained(), {"explained_variance": explained, "lr": np.full(ROWS, 1e-6)})
    assert (anomaly.index, anomaly.severity) == (199, "warning")
    assert "learning rate (now 1e-06)" in anomaly.advice


def test_one_that_is_far_worse_than_a_constant_is_told_after_its_first_rows(told):
    off = -3.0 + np.random.default_rng(1).normal(0.0, 0.5, ROWS)
    assert told(ValueUnexplained(), {"explained_variance": off})[0] == (49, "warning", "far_worse")
    assert told(ValueUnexplained(), {"explained_variance": np.where(AT < 30, off, 0.2)}) == []
    solved = {"explained_variance": off[:120], "value_loss": np.where(AT < 5, 1.0, 0.01)[:120]}  # returns hardly differ any more
    assert told(ValueUnexplained(), solved) == []
    assert told(ValueUnexplained(), {"explained_variance": np.where(AT % 20 < 6, off, 0.2)}) == []


@pytest.mark.parametrize(("rows", "found"), [(6, False), (15, True)])
def test_a_value_head_that_starts_far_too_large(told, rows, found):
    """A fresh head may be far off in the first rows; it must find the scale of the returns soon."""
    explained = np.where(rows > AT, -70.0, 0.1)
    assert told(ValueUnexplained(), {"explained_variance": explained}) == ([(11, "warning", "far_off_at_first")] if found else [])


def test_values_that_approach_the_returns_are_not_far_off(told):
    """A fresh head of a large model starts far too low, and halves its error every other row."""
    assert told(ValueUnexplained(), {"explained_variance": 0.2 - 1400.0 * 0.65**AT}) == []
    assert told(ValueUnexplained(), {"explained_variance": 0.2 - 70.0 * 0.95**AT})[0] == (11, "warning", "far_off_at_first")


def test_one_that_forgets(judge):
    explained = np.select([AT < 250, AT < 330], [0.5, -0.2], 0.4)
    (anomaly,) = judge(ValueUnexplained(), {"explained_variance": explained})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (320, "warning", 341)


def test_values_that_explain_nothing_scatter_about_zero(told):
    scatter = np.random.default_rng(2).normal(0.0, 0.04, ROWS)
    assert told(ValueUnexplained(), {"explained_variance": scatter}) == [(199, "warning", "nothing_explained")]
    assert told(ValueUnexplained(), {"explained_variance": 0.15 + scatter}) == []


def test_a_dip_is_silent(where):
    assert where(ValueUnexplained(), {"explained_variance": np.where((AT > 250) & (AT < 290), -0.5, 0.5)}) == []


@pytest.mark.parametrize("row", [100, 230, 256, 270])
def test_a_break_changes_nothing(judge, broken_off, row):
    for kind, columns in (
        (ValueDivergence, {"value_loss": grown(1000.0), "reward_mean": np.where(AT < 240, 1.0, 0.0)}),
        (ValueUnexplained, {"explained_variance": np.where(AT < 220, 0.5, -0.2)}),
    ):
        whole = [anomaly.to_dict() for anomaly in judge(kind(), columns)]
        assert [anomaly.to_dict() for anomaly in broken_off(kind, columns, row)] == whole != []


def test_an_absurd_value_loss_needs_one_row(where):
    assert where(ValueDivergence(), {"value_loss": [0.01, 0.02, 5.9e9, 1.2e13]}) == [(3, "critical")]
    assert where(ValueDivergence(), {"value_loss": [2e10, 3e10, 2e10, 4e10]}) == []  # returns of that size from the start


def test_a_loss_that_grows_with_the_returns_it_explains_is_silent(where):
    loss = grown(20.0)
    assert where(ValueDivergence(), {"value_loss": loss})
    assert where(ValueDivergence(), {"value_loss": loss, "explained_variance": np.full(ROWS, 0.6)}) == []
    forgets = np.where(AT < 200, 0.6, 0.25)
    assert where(ValueDivergence(), {"value_loss": loss, "explained_variance": forgets})
