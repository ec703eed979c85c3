"""Losses that leap."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.run.loss_explosion import LossExplosion

ROWS = 300
AT = np.arange(ROWS)


def losses(centre: float = 0.0, scale: float = 0.05, seed: int = 0) -> np.ndarray:
    return centre + np.random.default_rng(seed).normal(0.0, scale, ROWS)


@pytest.mark.parametrize("seed", range(5))
def test_noise_around_zero_is_silent(where, seed):
    heavy = 0.001 * np.random.default_rng(seed).standard_t(2, ROWS)
    assert where(LossExplosion(), {"loss": heavy}) == []


def test_a_loss_that_begins_at_exactly_zero_is_silent(where):
    assert where(LossExplosion(), {"loss": np.where(AT < 50, 0.0, AT / 10_000.0)}) == []
    assert where(LossExplosion(), {"policy_loss": np.where(AT == 60, 1.9, 0.0)}) == []


def test_a_large_loss_of_the_runs_own_is_silent(where):
    assert where(LossExplosion(), {"loss": losses(500.0, 100.0)}) == []


def test_a_loss_that_falls_from_the_first_row_is_silent(where):
    assert where(LossExplosion(), {"loss": 20.0 * np.exp(-AT / 4.0) + 0.2}) == []


def test_one_leap_is_silent(where):
    loss = losses()
    loss[100] = 1e6
    assert where(LossExplosion(), {"loss": loss}) == []


def test_leaps_far_apart_are_silent(where):
    loss = losses()
    loss[[50, 160, 270]] = 1e6
    assert where(LossExplosion(), {"loss": loss}) == []


def test_leaps_that_recur_warn_then_are_critical(judge):
    loss = losses()
    loss[[60, 75, 90, 96]] = [17.0, -80.0, 25.0, 200.0]
    warning, critical = judge(LossExplosion(), {"loss": loss, "lr": np.full(ROWS, 1e-4)})
    assert (warning.index, warning.severity) == (75, "warning")
    assert (critical.index, critical.severity, critical.cleared_index) == (96, "critical", 194)
    assert "4 times in 37 rows" in critical.message and "0.0001 now" in critical.advice


def test_a_level_that_stays_up(where):
    assert where(LossExplosion(), {"loss": losses(0.7) * np.where(AT < 100, 1.0, 15.0)}) == [(102, "warning")]
    assert where(LossExplosion(), {"loss": losses(0.7) * np.where(AT < 100, 1.0, 300.0)}) == [(101, "warning"), (103, "critical")]


def test_a_level_that_stays_up_with_damage_is_critical(where):
    reward = np.where(AT < 100, 0.9, 0.1) + losses(scale=0.01)
    loss = losses(0.7) * np.where(AT < 100, 1.0, 15.0)
    assert where(LossExplosion(), {"loss": loss, "reward_mean": reward}) == [(102, "warning"), (107, "critical")]


def test_the_total_loss_is_judged_where_there_is_one(where):
    leaping = np.where((AT % 10 == 9) & (AT > 40), 1e3, 0.0)
    assert where(LossExplosion(), {"loss": losses(), "policy_loss": leaping}) == []
    assert where(LossExplosion(), {"policy_loss": leaping}) == [(59, "warning"), (79, "critical")]


def test_the_loss_of_values_that_lag_behind_a_growing_reward_is_a_note(where):
    reward = np.exp(0.03 * np.maximum(AT - 100, 0)) + losses()
    value = np.maximum(0.3 * (reward - 1.0) ** 2, 0.1)
    columns = {"loss": 0.5 * value + losses(), "reward_mean": reward}
    assert where(LossExplosion(), {**columns, "value_loss": value}) == []
    assert where(LossExplosion(), columns)[-1][1] == "critical"
    assert where(LossExplosion(), {**columns, "value_loss": 0.01 * value})[-1][1] == "critical"


def test_a_loss_that_was_zero_while_no_response_scored_has_no_scale_yet(told):
    found = np.where(AT < 20, 0.0, losses(5.0, 0.3))
    assert told(LossExplosion(), {"loss": found}) == []
    assert told(LossExplosion(), {"loss": 20.0 * found})


def test_a_large_loss_beside_a_reward_that_rises_is_a_note(told):
    columns = {"loss": np.where(AT < 30, 0.1, 5.0) + losses(), "reward_mean": 0.005 * AT + losses(0.0, 0.4, 1)}
    assert {severity for row, severity, _ in told(LossExplosion(), columns) if row > 60} == {"note"}
    assert {severity for _, severity, _ in told(LossExplosion(), {**columns, "reward_mean": losses(0.0, 1.0)})} == {"warning"}
