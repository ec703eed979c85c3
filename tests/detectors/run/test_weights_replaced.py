"""Weights that something other than the optimizer has changed."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.run.weights_replaced import WeightsReplaced
from rldk.judge.engine import Engine

ROWS = 200
AT = np.arange(ROWS)
AGAIN = AT % 100  # training that starts over at row 100


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


USUAL = 1e-5 * np.exp(noise(0.2))
LEARNT = 0.2 + 0.006 * AGAIN + noise(0.01)


@pytest.mark.parametrize(("size", "found"), [(1e-3, [(100, "note", "leap")]), (5e-5, [])])
def test_a_leap_of_the_weights(told, size, found):
    assert told(WeightsReplaced(), {"weight_change": np.where(AT == 100, size, USUAL)}) == found


def test_the_first_updates_are_no_leap(told):
    assert told(WeightsReplaced(), {"weight_change": np.where(AT < 10, 1e-9, 1e-4)}) == []


def test_a_schedule_that_starts_anew_explains_larger_steps(told):
    lr = 1e-5 * (0.5 + 0.5 * np.cos(np.pi * AGAIN / 99.0)) + 1e-9
    assert told(WeightsReplaced(), {"weight_change": lr * np.exp(noise(0.1)), "lr": lr}) == []
    assert told(WeightsReplaced(), {"weight_change": lr * np.exp(noise(0.1))}) == [(100, "note", "leap")]


LEAP = {"weight_change": np.where(AT == 100, 1e-3, USUAL)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("name", "change", "hurt"),
    [
        ("reward_mean", -0.1, True),
        ("reward_mean", 0.1, False),
        ("reward_mean", 0.0, False),
        ("loss", 0.1, True),
        ("loss", -0.1, False),
    ],
)
def test_a_leap_is_a_warning_where_the_rows_after_it_are_worse(told, seed, name, change, hurt):
    rows = {**LEAP, name: 0.6 + np.where(AT < 100, 0.0, change) + noise(0.02, seed)}
    found = [(severity, clause) for _, severity, clause in told(WeightsReplaced(), rows)]
    assert found == [("note", "leap"), *([("warning", "leap_hurt")] if hurt else [])]


def test_kl_and_reward_back_at_the_start_are_told_with_the_third_row(told):
    columns = {"kl_mean": 0.01 * AGAIN, "reward_mean": LEARNT}
    assert told(WeightsReplaced(), columns) == [(101, "warning", "at_reference")]
    above_zero = {**columns, "kl_mean": 0.01 + 0.01 * AGAIN}
    assert told(WeightsReplaced(), above_zero) == [(102, "warning", "fell_back")]
    assert told(WeightsReplaced(), {"kl_mean": 0.01 * AGAIN}) == []


def test_a_reward_that_stays_says_that_the_policy_is_the_same(told):
    assert told(WeightsReplaced(), {"kl_mean": 0.01 * AGAIN, "reward_mean": 0.2 + 0.003 * AT + noise(0.01)}) == []


def test_a_row_that_falls_and_comes_back_is_silent(told):
    assert told(WeightsReplaced(), {"kl_mean": np.where(AT == 100, 0.0, 0.01 * AT), "reward_mean": LEARNT}) == []


def test_a_kl_too_small_to_tell_is_silent(told):
    assert told(WeightsReplaced(), {"kl_mean": 4e-4 * AGAIN}) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_noisy_kl_is_silent(told, seed):
    assert told(WeightsReplaced(), {"kl_mean": 0.1 * np.exp(noise(0.5, seed))}) == []


def restarts(every: int, **more: np.ndarray) -> dict[str, np.ndarray]:
    """A run that begins again from its first weights so often."""
    since = AT % every
    return {"kl_mean": 0.02 * since, "reward_mean": 0.3 + 0.1 * since + noise(0.01), **more}


def test_a_policy_that_is_its_reference_again_and_again(told):
    assert told(WeightsReplaced(), restarts(8))[:2] == [
        (9, "warning", "at_reference"), (17, "critical", "again_at_reference")
    ]  # fmt: skip
    leaps = restarts(8, reward_mean=noise(0.01), weight_change=np.where(AT % 8 == 0, 0.05, 0.01))
    assert told(WeightsReplaced(), leaps)[0] == (9, "warning", "at_reference")


def test_a_reference_that_is_moved_to_the_policy_is_silent(told):
    assert told(WeightsReplaced(), restarts(50, reward_mean=0.3 + 0.01 * AT)) == []
    noisy = restarts(8, reward_mean=0.3 + noise(0.2))
    assert told(WeightsReplaced(), noisy)[0][2] == "at_reference"  # some of the rows are low by chance
    assert told(WeightsReplaced(), noisy, None, {"sync_ref_model": True}) == []


def test_a_kl_that_was_on_its_way_down_can_fall_back_too(told):
    falling = np.exp(-0.15 * (AT % 10))  # the range of the rows before is that of a factor
    columns = {"kl_mean": np.where(AT < 100, 0.5 * falling, 0.03), "reward_mean": LEARNT}
    assert told(WeightsReplaced(), columns) == [(102, "warning", "fell_back")]


@pytest.mark.parametrize("scale", [0.01, 1.0, 40.0])  # of beta and of the length
def test_a_margin_that_falls_back_at_once(told, scale):
    margin = scale * (0.1 + 0.01 * AGAIN + noise(0.02))
    assert told(WeightsReplaced(), {"preference_margin": margin}) == [(102, "warning", "margin_fell_back")]


@pytest.mark.parametrize("seed", range(20))
def test_a_margin_of_few_pairs_is_silent(told, seed):
    for growth in (0.0, 0.01):
        assert told(WeightsReplaced(), {"preference_margin": 0.3 + growth * AT + noise(0.4, seed)}) == []
    slow = np.where(AT < 100, 1.0, np.maximum(1.0 - 0.02 * (AT - 100), 0.1)) + noise(0.03, seed)
    assert told(WeightsReplaced(), {"preference_margin": slow}) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_margin_that_sinks_below_zero_has_not_fallen_back(told, seed):
    assert told(WeightsReplaced(), {"preference_margin": -0.5 - 0.02 * AT + noise(0.1, seed)}) == []
    assert told(WeightsReplaced(), {"preference_margin": np.where(AT < 100, -0.5, -1.6) + noise(0.02, seed)}) == []


def test_two_rows_of_a_step_are_one():
    """A dip of two steps is too short, also where each step takes two calls."""
    engine = Engine([WeightsReplaced()])
    for step in range(100):
        margin = 0.1 if step in (70, 71) else 0.5 + 0.005 * step
        for _ in range(2):
            engine.supplement(Event(step, {"preference_margin": margin}))
    assert engine.anomalies == []
