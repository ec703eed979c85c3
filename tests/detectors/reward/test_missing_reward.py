"""Rewards that are not there, for a part of the responses."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.missing_reward import MissingReward

ROWS = 200
AT = np.arange(ROWS)


def test_it_is_told_where_it_begins_and_once(judge):
    (anomaly,) = judge(MissingReward(), {"reward_missing_frac": np.where(AT < 100, 0.0, 0.25)})
    assert (anomaly.index, anomaly.severity, anomaly.since) == (104, "warning", 102)
    assert "25%" in anomaly.message


@pytest.mark.parametrize(
    "missing", [np.zeros(ROWS), np.where(AT % 10 == 0, 0.5, 0.0), np.full(ROWS, 0.01)], ids=["none", "now and then", "a few"]
)
def test_it_is_silent(where, missing):
    assert where(MissingReward(), {"reward_missing_frac": missing}) == []


def test_it_clears_when_rewards_are_back(judge):
    (anomaly,) = judge(MissingReward(), {"reward_missing_frac": np.where((AT < 100) | (AT >= 150), 0.0, 0.25)})
    assert anomaly.cleared_index == 161


def test_without_the_share_it_is_inactive(inactive):
    assert inactive(MissingReward(), {"reward_mean": np.ones(ROWS)}) == [("missing_reward", ["reward_missing_frac"])]
