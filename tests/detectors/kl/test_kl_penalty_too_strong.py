"""A penalty that costs more than any reward pays."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.kl_penalty_too_strong import KlPenaltyTooStrong

ROWS = 100
AT = np.arange(ROWS)
FLAT = 0.5 + np.random.default_rng(0).normal(0.0, 0.02, ROWS)
RISING = FLAT + AT / ROWS


def coef(value: float) -> dict[str, np.ndarray]:
    return {"kl_coef": np.full(ROWS, value)}


@pytest.mark.parametrize("reward", [FLAT, RISING], ids=["flat", "rising"])
def test_what_recipes_and_controllers_use_is_silent(told, reward):
    for value in (0.0, 0.05, 0.5, 0.9):
        assert told(KlPenaltyTooStrong(), {**coef(value), "reward_mean": reward}) == []
    controlled = {"kl_coef": np.clip(0.05 * 1.05**AT, 0.0, 1.9), "reward_mean": reward}
    assert told(KlPenaltyTooStrong(), controlled) == []


@pytest.mark.parametrize("reward", [FLAT, RISING], ids=["flat", "rising"])
def test_a_constant_of_one_is_a_warning(told, reward):
    assert told(KlPenaltyTooStrong(), {**coef(1.0), "reward_mean": reward}) == [(1, "warning", "set_high")]
    implied = {"kl_mean": np.full(ROWS, 0.3), "kl_penalty_reward": np.full(ROWS, -0.3), "reward_mean": reward}
    assert told(KlPenaltyTooStrong(), implied) == []


def test_two_is_a_warning_with_the_second_row_and_critical_if_the_reward_stays_where_it_was(told):
    strong = (1, "warning", "strong")
    assert told(KlPenaltyTooStrong(), {**coef(2.0), "reward_mean": RISING}) == [strong]
    assert told(KlPenaltyTooStrong(), {"kl_coef": np.full(45, 2.0), "reward_mean": FLAT[:45]}) == [strong]
    (first, (row, *said)) = told(KlPenaltyTooStrong(), {**coef(2.0), "reward_mean": FLAT})
    assert first == strong and said == ["critical", "holds_back"] and row >= 48


def test_five_is_critical_once_the_reward_has_shown_no_trend_for_ten_rows(told):
    strong = (1, "warning", "strong")
    assert told(KlPenaltyTooStrong(), {**coef(5.0), "reward_mean": FLAT}) == [strong, (18, "critical", "holds_back")]
    assert told(KlPenaltyTooStrong(), {"kl_coef": np.full(45, 4.9), "reward_mean": FLAT[:45]}) == [strong]
    assert told(KlPenaltyTooStrong(), {**coef(5.0), "reward_mean": RISING}) == [strong]


def test_one_row_is_no_coefficient(told):
    assert told(KlPenaltyTooStrong(), {"kl_coef": np.where(AT == 50, 9.0, 0.05), "reward_mean": FLAT}) == []


def test_the_penalty_and_the_kl_tell_the_coefficient(told):
    kl = np.full(ROWS, 0.1)
    strong = {"kl_mean": kl, "kl_penalty_reward": -6.0 * kl, "reward_mean": FLAT}
    assert told(KlPenaltyTooStrong(), strong) == [(3, "warning", "strong"), (18, "critical", "holds_back")]
    assert told(KlPenaltyTooStrong(), {"kl_mean": kl, "kl_penalty_reward": -0.05 * kl, "reward_mean": FLAT}) == []
    assert told(KlPenaltyTooStrong(), {**strong, "kl_mean": np.full(ROWS, 0.01)}) == []


def group_method(beta: float, noise: float = 0.1, seed: int = 0) -> dict[str, np.ndarray]:
    """A log without the coefficient: the loss is the coefficient times the KL, and the noise of the policy's part."""
    chance = np.random.default_rng(seed)
    kl = chance.lognormal(-4.0, 1.0, ROWS)
    return {"kl_mean": kl, "loss": beta * kl + chance.normal(0.0, noise, ROWS), "reward_std": np.full(ROWS, 0.5)}


def test_loss_and_kl_of_a_group_method_imply_the_coefficient(told):
    found = told(KlPenaltyTooStrong(), {**group_method(20.0), "reward_mean": FLAT}, {"kl_mean": "token"})
    assert {clause for *_, clause in found} == {"strong", "holds_back"}
    assert {clause for *_, clause in told(KlPenaltyTooStrong(), {**group_method(20.0), "reward_mean": RISING})} == {"strong"}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("beta", [0.0, 0.04, 0.5])
def test_the_loss_of_a_usual_coefficient_implies_nothing(told, beta, seed):
    assert told(KlPenaltyTooStrong(), {**group_method(beta, seed=seed), "reward_mean": FLAT}) == []


def test_a_loss_with_a_value_function_in_it_implies_nothing(told):
    value = {"value_loss": np.ones(ROWS)}
    assert told(KlPenaltyTooStrong(), {**group_method(20.0), **value, "reward_mean": FLAT}) == []


def test_a_coefficient_that_becomes_huge_is_critical_once_the_reward_has_fallen(told):
    rows = {"kl_coef": np.where(AT < 50, 0.05, 20.0), "reward_mean": np.where(AT < 60, RISING, RISING[60] - 0.02 * (AT - 60))}
    found = {clause: index for index, _, clause in told(KlPenaltyTooStrong(), rows)}
    assert 50 <= found["strong"] < 60 < found["holds_back"] < 90


def test_a_coefficient_that_rises_step_by_step_is_that_of_a_controller(told):
    rows = np.arange(len(FLAT))
    rising = {"kl_coef": np.minimum(0.05 * 1.2**rows, 100.0), "reward_mean": RISING}
    assert [said for _, *said in told(KlPenaltyTooStrong(), rising)] == [["warning", "driven_up"]]
    at_once = {**rising, "kl_coef": np.where(rows < 20, 0.05, 20.0)}
    assert [said for _, *said in told(KlPenaltyTooStrong(), at_once)] == [["warning", "strong"]]
