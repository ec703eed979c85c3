"""Updates that are too large, from the start or since the learning rate jumped."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.run.learning_rate_too_high import LearningRateTooHigh

ROWS = 300
AT = np.arange(ROWS)


def around(level: float, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


@pytest.mark.parametrize("seed", range(4))
def test_usual_updates_are_silent(where, seed):
    usual = {
        "kl_update": around(0.01, 0.7, seed),
        "clip_frac": around(0.15, 0.3, seed),
        "kl_mean": around(4.0),
        "lr": around(1e-5, 0.0),
    }
    assert where(LearningRateTooHigh(), usual) == []


def test_one_update_a_batch_is_silent(where):
    assert where(LearningRateTooHigh(), {"kl_update": np.zeros(ROWS), "clip_frac": np.zeros(ROWS)}) == []


def test_lone_large_updates_are_silent(where):
    update = around(0.01)
    update[[2, 9, 100]] = 0.5
    assert where(LearningRateTooHigh(), {"kl_update": update}) == []


@pytest.mark.parametrize("peak", [1e-6, 1e-4])
def test_warm_up_is_silent(where, peak):
    lr = peak * np.minimum((AT + 1) / 30.0, 1.0) * np.clip(1.0 - AT / ROWS, 0.0, 1.0)
    assert where(LearningRateTooHigh(), {"lr": lr, "truncated_frac": np.ones(ROWS)}) == []


def test_large_updates_are_told_after_eight_rows_whenever_they_come(told):
    assert told(LearningRateTooHigh(), {"kl_update": np.where(AT < 50, 0.01, 0.5)}) == [(59, "warning", "large_updates")]
    assert told(LearningRateTooHigh(), {"kl_update": np.where(AT < 50, 0.01, 0.1)}) == []
    assert told(LearningRateTooHigh(), {"kl_update": np.where((AT < 50) | (AT >= 57), 0.01, 0.5)}) == []


def test_too_large_from_the_start(judge):
    (anomaly,) = judge(LearningRateTooHigh(), {"kl_update": np.where(AT < 120, 0.2, 0.01), "lr": np.full(ROWS, 5e-4)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (9, "warning", 2, 131)
    assert "0.0005 now" in anomaly.advice


def test_large_updates_with_damage_are_critical(told):
    columns = {"kl_update": np.full(ROWS, 0.3), "entropy_mean": np.where(AT < 50, 1.0, 0.01)}
    found = [(9, "warning", "large_updates"), (54, "critical", "large_updates_with_damage")]
    assert told(LearningRateTooHigh(), columns) == found
    assert told(LearningRateTooHigh(), {**columns, "kl_update": np.full(ROWS, 0.01)}) == []


@pytest.mark.parametrize(("rise", "found"), [(0.0, True), (1.0, False)])
def test_large_updates_are_critical_where_the_reward_does_not_rise(told, rise, found):
    columns = {"kl_update": np.full(ROWS, 0.3), "reward_mean": rise * np.clip(AT / 150.0, 0.0, 1.0) + around(0.1)}
    said = told(LearningRateTooHigh(), columns)
    assert said[0] == (9, "warning", "large_updates")
    assert [one for one in said if one[1] == "critical"] == ([(36, "critical", "large_updates_for_nothing")] if found else [])


def test_large_updates_are_a_note_while_the_reward_thrives_and_nothing_is_damaged(told):
    rises = np.clip(AT / 50.0, 0.0, 1.0) + around(0.02)
    columns = {"kl_update": np.where(AT < 100, 0.01, 0.3), "reward_mean": rises, "entropy_mean": np.ones(ROWS)}
    assert [(severity, clause) for _, severity, clause in told(LearningRateTooHigh(), columns)] == [("note", "large_updates")]
    fallen = {**columns, "entropy_mean": np.where(AT < 150, 1.0, 0.01)}
    assert [severity for _, severity, _ in told(LearningRateTooHigh(), fallen)] == ["note", "warning", "critical"]


@pytest.mark.parametrize(
    ("rate", "found"),
    [
        (0.004, []),
        (0.006, [(0, "warning", "high")]),
        (0.4, [(0, "warning", "high")]),
        (0.6, [(0, "critical", "absurd")]),
        (1e6, [(0, "critical", "absurd")]),
    ],
)
def test_a_rate_that_no_recipe_uses_is_told_in_the_first_row(told, rate, found):
    assert told(LearningRateTooHigh(), {"lr": np.full(ROWS, rate)}) == found


def test_a_high_rate_with_damage_is_critical(told):
    damaged = {"entropy_mean": np.where(AT < 50, 1.0, 0.01)}
    found = [(0, "warning", "high"), (54, "critical", "high_with_damage")]
    assert told(LearningRateTooHigh(), {"lr": np.full(ROWS, 0.006), **damaged}) == found
    assert told(LearningRateTooHigh(), {"lr": np.full(ROWS, 0.004), **damaged}) == []


@pytest.mark.parametrize(
    ("lr", "found"),
    [
        (np.where(AT < 100, 1e-6, 2e-5), [(100, "warning", "jumped")]),
        (np.where(AT < 100, 1e-4, 2e-3), [(100, "critical", "leapt")]),
        (np.where(AT < 100, 1e-6, 3e-6), []),
        (np.where(AT < 3, 1e-6, 2e-5), []),
    ],
    ids=["jumped", "leapt", "a little", "warm-up"],
)
def test_a_rate_that_jumps(told, lr, found):
    assert told(LearningRateTooHigh(), {"lr": lr}) == found


def test_a_jump_with_damage(judge):
    jump = {
        "lr": np.where(AT < 100, 1e-6, 2e-5),
        "kl_update": around(0.01),
        "reward_mean": 0.9 - 0.8 * np.clip((AT - 110) / 8.0, 0.0, 1.0) + around(0.01),
    }
    warning, critical = judge(LearningRateTooHigh(), jump)
    assert (warning.index, warning.severity, warning.clause) == (100, "warning", "jumped")
    assert "jumped from 1e-06 to 2e-05" in warning.message
    assert (critical.severity, critical.clause) == ("critical", "high_with_damage") and 112 <= critical.index <= 118


def test_a_restart_of_the_schedule_is_silent(where):
    lr = 1e-5 * (0.5 + 0.5 * np.cos(np.pi * (AT % 100) / 100.0))
    assert where(LearningRateTooHigh(), {"lr": lr, "kl_update": np.where(AT < 20, 0.01, 0.05)}) == []
