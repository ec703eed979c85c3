"""Rewards that are not there, for a part of the responses or for all."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.reward.missing_reward import MissingReward
from rldk.judge.engine import Engine

ROWS = 200
AT = np.arange(ROWS)


def test_it_is_told_where_it_begins_and_once(judge):
    (anomaly,) = judge(MissingReward(), {"reward_missing_frac": np.where(AT < 100, 0.0, 0.75)})
    assert (anomaly.index, anomaly.severity, anomaly.since) == (106, "warning", 102)
    assert "75%" in anomaly.message


def test_a_part_is_a_note(told):
    missing = {"reward_missing_frac": np.where(AT < 100, 0.0, 0.25)}
    assert told(MissingReward(), missing) == [(104, "note", "some_missing")]


@pytest.mark.parametrize(
    "missing", [np.zeros(ROWS), np.where(AT % 10 == 0, 0.5, 0.0), np.full(ROWS, 0.01)], ids=["none", "now and then", "a few"]
)
def test_it_is_silent(where, missing):
    assert where(MissingReward(), {"reward_missing_frac": missing}) == []


def test_it_clears_when_rewards_are_back(judge):
    (anomaly,) = judge(MissingReward(), {"reward_missing_frac": np.where((AT < 100) | (AT >= 150), 0.0, 0.75)})
    assert anomaly.cleared_index == 161


def test_without_the_share_it_is_inactive(inactive):
    assert inactive(MissingReward(), {"reward_mean": np.ones(ROWS)}) == [("missing_reward", ["reward_missing_frac"])]


def raised(rewards: list[float | str | None], **more: float) -> list[tuple[int, str, str, int]]:
    """What is raised for a log of rewards: `None` is written as null, and a word is a row that does not speak of it."""
    engine = Engine([MissingReward()])
    for step, reward in enumerate(rewards):
        known = {"reward_mean": reward} if isinstance(reward, float) else {}
        engine.observe(Event(step, {"loss": 0.1, **known, **more}, nulls=("reward_mean",) if reward is None else ()))
    return [(one.index, one.severity, one.clause, one.since) for one in engine.anomalies]


def test_a_reward_that_is_null_in_every_row_is_critical():
    assert raised([None] * 30) == [(4, "critical", "all_missing", 0)]
    assert raised([0.5] * 10 + [None] * 30) == [(14, "critical", "all_missing", 10)]


def test_rows_of_an_evaluation_between_are_no_rows_without_a_reward():
    assert raised([0.5, 0.5, None, *["eval"] * 20]) == []
    assert raised([0.5, 0.5, *[None, None, "eval"] * 5]) == [(8, "critical", "all_missing", 2)]


@pytest.mark.parametrize("apart", [2, 4, 5])
def test_a_reward_in_some_rows_only_is_a_habit(apart):
    assert raised([0.5 if row % apart == 0 else None for row in range(60)]) == []


def test_a_gap_counts_when_it_is_twice_as_long_as_those_before():
    log = [0.5 if row % 5 == 0 else None for row in range(41)]
    assert raised([*log, *[None] * 20]) == [(48, "critical", "all_missing", 41)]


def test_a_reward_that_is_nan_is_not_also_missing():
    assert raised([float("nan")] * 30) == []
