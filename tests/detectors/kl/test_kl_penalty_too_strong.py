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
    for value in (0.0, 0.05, 0.5, 1.9):
        assert told(KlPenaltyTooStrong(), {**coef(value), "reward_mean": reward}) == []


@pytest.mark.parametrize("reward", [FLAT, RISING], ids=["flat", "rising"])
def test_two_is_a_warning_with_the_second_row(told, reward):
    assert told(KlPenaltyTooStrong(), {**coef(2.0), "reward_mean": reward}) == [(1, "warning", "strong")]


def test_five_is_critical_once_the_reward_has_shown_no_trend_for_ten_rows(told):
    strong = (1, "warning", "strong")
    assert told(KlPenaltyTooStrong(), {**coef(5.0), "reward_mean": FLAT}) == [strong, (18, "critical", "holds_back")]
    assert told(KlPenaltyTooStrong(), {**coef(4.9), "reward_mean": FLAT}) == [strong]
    assert told(KlPenaltyTooStrong(), {**coef(5.0), "reward_mean": RISING}) == [strong]


def test_one_row_is_no_coefficient(told):
    assert told(KlPenaltyTooStrong(), {"kl_coef": np.where(AT == 50, 9.0, 0.05), "reward_mean": FLAT}) == []


def test_the_penalty_and_the_kl_tell_the_coefficient(told):
    kl = np.full(ROWS, 0.1)
    strong = {"kl_mean": kl, "kl_penalty_reward": -6.0 * kl, "reward_mean": FLAT}
    assert told(KlPenaltyTooStrong(), strong) == [(3, "warning", "strong"), (18, "critical", "holds_back")]
    assert told(KlPenaltyTooStrong(), {"kl_mean": kl, "kl_penalty_reward": -0.05 * kl, "reward_mean": FLAT}) == []
    assert told(KlPenaltyTooStrong(), {**strong, "kl_mean": np.full(ROWS, 0.01)}) == []
