"""A reward without signal: flat, without spread, or None."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.reward.dead_reward import DeadReward
from rldk.judge.engine import Engine

ROWS = 200
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def flat(value: float) -> np.ndarray:
    return np.full(ROWS, value)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [0.02, 1.0, -30.0])
def test_a_reward_that_varies_is_silent(where, level, seed):
    assert where(DeadReward(), {"reward_mean": level * (1.0 + noise(0.1, seed)), "reward_std": flat(0.3)}) == []


def test_a_solved_task_is_silent(where):
    solved = {"reward_mean": np.clip(AT / 80.0, 0.0, 1.0), "reward_std": np.where(AT < 80, 0.4, 0.0)}
    assert where(DeadReward(), solved) == []


def test_a_task_solved_from_the_start_has_spread_left(where):
    assert where(DeadReward(), {"reward_mean": 0.97 + noise(0.002), "reward_std": 0.15 + noise(0.01)}) == []


def test_a_constant_mean_with_spread_between_responses_is_silent(where):
    assert where(DeadReward(), {"reward_mean": flat(0.5), "reward_std": flat(0.5)}) == []


def test_every_response_at_the_cap_with_a_good_reward_is_silent(where):
    capped = {"reward_mean": 0.2 + AT / 400.0 + noise(0.02), "truncated_frac": flat(1.0), "eos_count": flat(0.0)}
    assert where(DeadReward(), capped) == []


def test_sparse_rows_between_are_silent(where):
    reward = [value if row % 3 == 0 else None for row, value in enumerate((0.4 + noise(0.05)).tolist())]
    assert where(DeadReward(), {"reward_mean": reward, "loss": flat(0.1)}) == []


def test_zero_from_the_start_is_a_warning_and_critical_where_it_lasts(judge):
    reward = np.where(AT < 100, 0.0, AT / 200.0)
    warning, critical = judge(DeadReward(), {"reward_mean": reward, "reward_std": np.where(AT < 100, 0.0, 0.4)})
    assert (warning.index, warning.severity, warning.since) == (19, "warning", 19)
    assert (critical.index, critical.severity) == (39, "critical")
    assert warning.cleared_index == critical.cleared_index == 104
    assert "has not moved from 0 for 20 rows" in warning.message


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        ({"truncated_frac": flat(1.0)}, "every response is cut off"),
        ({"eos_count": flat(0.0)}, "no response ends by itself"),
        ({"eos_frac": flat(0.01)}, "no response ends by itself"),
    ],
)
def test_a_visible_cause_makes_it_critical_soon(judge, columns, cause):
    reward = flat(-1.0) + np.where(AT % 2, noise(0.01), 0.0)
    (anomaly,) = judge(DeadReward(), {"reward_mean": reward, **columns})
    assert (anomaly.index, anomaly.severity) == (11, "critical")
    assert cause in anomaly.message


def test_with_a_cause_a_reward_that_varies_by_its_noise_alone_is_a_warning_until_it_lasts(where):
    columns = {"reward_mean": flat(-1.0) + noise(0.01), "truncated_frac": flat(1.0)}
    assert where(DeadReward(), columns) == [(11, "warning"), (39, "critical")]
    columns["reward_mean"] = columns["reward_mean"] + 0.3 * AT / ROWS  # it learns, by little beside its size
    assert where(DeadReward(), columns) == [(11, "warning")]


@pytest.mark.parametrize("zero", [5.0, -5.0, 50.0])
def test_a_reward_may_have_any_zero(where, zero):
    """Small changes of a large number are changes: what a reward model gives is off by a constant of its own."""
    learning = zero + 0.3 * AT / ROWS + noise(0.02)
    assert where(DeadReward(), {"reward_mean": learning}) == []


def test_a_spread_that_was_there_and_is_gone(where):
    reward = np.where(AT < 60, 0.8, 0.5) + np.where(AT < 60, noise(0.05), 0.0)
    assert where(DeadReward(), {"reward_mean": reward, "reward_std": np.where(AT < 60, 0.3, 0.0)}) == [
        (79, "warning"),
        (99, "critical"),
    ]


def nulls(rows: int, start: int) -> list[Event]:
    found = [Event(row, {"reward_mean": 0.5 + 0.1 * math.sin(row), "loss": 0.1}) for row in range(start)]
    return found + [Event(row, {"loss": 0.1}, nulls=("reward_mean",)) for row in range(start, start + rows)]


def test_none_thrice_is_a_warning_and_five_times_critical():
    engine = Engine([DeadReward()])
    events = nulls(10, 40)
    events += [Event(row, {"reward_mean": 0.5 + 0.1 * math.sin(row)}) for row in range(50, 90)]
    for event in events:
        engine.observe(event)
    assert [(anomaly.index, anomaly.severity) for anomaly in engine.anomalies] == [(42, "warning"), (44, "critical")]
    assert engine.anomalies[0].message == "The reward has been None for 3 rows."
    assert [anomaly.cleared_index for anomaly in engine.anomalies] == [54, 54]


def test_none_now_and_then_is_silent():
    engine = Engine([DeadReward()])
    for start in range(0, 200, 10):
        for event in nulls(2, 8):
            event.step += start
            engine.observe(event)
    assert engine.anomalies == []


def test_the_patience_can_be_set(where):
    assert where(DeadReward(lasting=100), {"reward_mean": flat(0.0)}) == [(49, "warning"), (99, "critical")]


def test_without_a_reward_the_share_of_right_answers_stands_for_it(judge):
    columns = {"accuracy": [0.0] * 40, "advantage_std": [0.05, 0.05] + [0.0] * 38, "kl_mean": [0.01] * 40}
    (anomaly,) = judge(DeadReward(), columns)
    assert (anomaly.index, anomaly.severity) == (15, "critical")
    assert "no advantage differs from another" in anomaly.message
    assert "scores better" not in anomaly.message  # no spread is logged that would say so


def test_right_answers_that_stand_still_are_nothing_beside_a_reward_or_without_advantages(where):
    moving = list(np.random.default_rng(0).normal(0.5, 0.1, 60))
    assert where(DeadReward(), {"accuracy": [0.0] * 60, "advantage_std": [1.0] * 60, "reward_mean": moving}) == []
    assert where(DeadReward(), {"accuracy": [0.5] * 60, "loss": moving}) == []
