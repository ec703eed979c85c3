"""Rewards of which hardly any is more than the least."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.sparse_reward import SparseReward

ROWS = 300
AT = np.arange(ROWS)
SELDOM = np.where(AT % 9 == 0, 0.125, 0.0)
TAKES_OFF = np.where(AT % np.maximum(9 - AT // 20, 1) == 0, 0.25, 0.0)


def test_it_is_told_once_after_eighty_rows(judge):
    (anomaly,) = judge(SparseReward(), {"reward_mean": SELDOM})
    assert (anomaly.index, anomaly.severity, anomaly.since) == (83, "warning", 79)
    assert "71 of the last 80 rows" in anomaly.message


def test_with_groups_that_have_no_spread_it_comes_sooner_and_becomes_critical(judge):
    first, second = judge(SparseReward(), {"reward_mean": SELDOM, "reward_zero_std_frac": np.where(SELDOM > 0.0, 0.75, 1.0)})
    assert (first.index, first.severity) == (43, "warning")
    assert (second.index, second.severity) == (62, "critical")
    assert "97% of the groups" in second.message


@pytest.mark.parametrize(
    "reward",
    [
        np.zeros(ROWS),
        np.where(AT % 9 == 0, 0.0, 1.0),
        np.where(AT % 3 == 0, 0.125, 0.0),
        TAKES_OFF,
        np.random.default_rng(0).binomial(32, 0.05, ROWS) / 32,
    ],
    ids=["always the same", "seldom bad", "a third of the rows", "takes off", "a hard task"],
)
def test_it_is_silent(where, reward):
    assert where(SparseReward(), {"reward_mean": reward}) == []


def test_it_clears_when_rewards_come(judge):
    (anomaly,) = judge(SparseReward(), {"reward_mean": np.where(AT < 150, SELDOM, 0.5)})
    assert anomaly.cleared_index == 173


def test_without_a_reward_it_is_inactive(inactive):
    assert inactive(SparseReward(), {"loss": np.ones(ROWS)}) == [("sparse_reward", ["reward_mean"])]


@pytest.mark.parametrize(("every", "found"), [(4, [(34, "warning", "no_success"), (54, "critical", "stays")]), (2, [])])
def test_rows_without_any_success_are_told_sooner_where_the_spread_is_logged(told, every, found):
    reward = np.where(AT % every == 0, 0.02, 0.0)[:60]
    assert told(SparseReward(), {"reward_mean": reward, "reward_std": np.where(reward > 0.0, 0.13, 0.0)}) == found


def test_one_response_per_row_has_no_spread(told):
    reward = np.where(AT % 4 == 0, 1.0, 0.0)[:60]
    assert told(SparseReward(), {"reward_mean": reward, "reward_std": np.zeros(60)}) == []


def test_successes_that_become_frequent_are_learning(told):
    reward = np.where((AT > 20) | (AT % 5 == 0), 0.1, 0.0)[:60]
    assert told(SparseReward(), {"reward_mean": reward, "reward_std": np.where(reward > 0.0, 0.3, 0.0)}) == []
