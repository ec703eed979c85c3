"""The reward jumps and the policy does not: a flipped sign is critical, an offset a note."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.policy_collapse import PolicyCollapse
from rldk.detectors.reward.reward_changed import RewardChanged

ROWS = 300
AT = np.arange(ROWS)
LATE = AT >= 150


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


REWARD = 1.46 * np.clip(AT / 80.0, 0.0, 1.0) + noise(0.05)
STAYS = {"kl_mean": 0.05 + noise(0.002, 3), "entropy_mean": 1.0 + noise(0.02, 4), "rollout_length_mean": 100.0 + noise(2.0, 5)}


def test_a_flipped_sign_is_critical_four_rows_later(judge):
    (anomaly,) = judge(RewardChanged(), {"reward_mean": np.where(LATE, -REWARD, REWARD), **STAYS})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (153, "critical", "flipped")
    assert "its sign was flipped" in anomaly.message
    assert anomaly.message.startswith("The reward jumped to minus its value at step 150,"), "not the step of the confirmation"


@pytest.mark.parametrize("by", [-5.0, 5.0])
def test_an_offset_is_a_note_and_no_fall(notes, where, by):
    columns = {"reward_mean": np.where(LATE, REWARD + by, REWARD), **STAYS}
    assert notes(RewardChanged(), columns) == [(153, "shifted")]
    assert where(PolicyCollapse(), columns) == []


def test_a_jump_back_towards_the_start_is_a_warning(clauses, notes):
    spread = {"reward_std": 0.5 + noise(0.01, 6)}
    back = {"reward_mean": np.where(LATE, 0.5 + noise(0.05, 7), REWARD), **spread, **STAYS}
    assert clauses(RewardChanged(), back) == [(169, "warning", "undone"), (192, "critical", "not_restored")]
    recovers = {**back, "reward_mean": np.where(LATE & (AT < 162), 0.5, REWARD)}
    assert clauses(RewardChanged(), recovers) == []
    beyond = {**back, "reward_mean": np.where(LATE, -0.5 + noise(0.05, 7), REWARD)}  # lower than it ever was: an offset
    assert clauses(RewardChanged(), beyond) == [] and notes(RewardChanged(), beyond) == [(153, "shifted")]


def test_an_outage_that_is_repaired_has_recovered(judge):
    outage = LATE & (AT < 200)
    columns = {"reward_mean": np.where(outage, 0.5 + noise(0.05, 7), REWARD), "reward_std": 0.5 + noise(0.01, 6), **STAYS}
    found = judge(RewardChanged(), columns)
    assert [anomaly.clause for anomaly in found] == ["undone", "not_restored"]
    assert {anomaly.cleared_index for anomaly in found} == {203}


@pytest.mark.parametrize("to", [0.35, 0.25, 0.15, 0.05])
def test_a_deeper_fall_of_a_share_is_no_milder(clauses, to):
    """A reward between 0 and 1 has no offset that keeps it there."""
    rises = 0.2 + 0.6 * np.clip(AT / 150.0, 0.0, 1.0)
    columns = {"reward_mean": np.clip(np.where(LATE, to, rises) + noise(0.015), 0.0, 1.0), **STAYS}
    assert [clause for *_, clause in clauses(RewardChanged(), columns)] == ["undone", "not_restored"]


def test_one_jump_is_one_finding(told):
    """What the policy learns after the jump makes up a part of it, and is no other jump."""
    regained = np.clip((AT - 200) / 60.0, 0.0, 1.0)
    columns = {"reward_mean": np.where(LATE, 0.5 + 0.8 * regained, REWARD) + noise(0.01, 7), "reward_std": 0.5 + noise(0.01, 6)}
    assert told(RewardChanged(), {**columns, **STAYS}) == [(169, "warning", "undone"), (192, "critical", "not_restored")]


def test_a_grader_that_fails_is_no_offset(clauses, notes):
    """Right answers get the reward of wrong ones: the reward falls below its start, but not below what responses had."""
    share = np.where(LATE, 0.1, 0.3 + 0.6 * np.clip(AT / 80.0, 0.0, 1.0))
    columns = {"reward_mean": share + noise(0.03), "reward_std": np.sqrt(share * (1.0 - share)) + 0.1, **STAYS}
    assert clauses(RewardChanged(), columns) == [(169, "warning", "undone"), (192, "critical", "not_restored")]
    repaired = {**columns, "reward_mean": np.where(LATE & (AT < 180), 0.1, 0.9) + noise(0.03)}
    assert clauses(RewardChanged(), repaired) == [(169, "warning", "undone")]


def test_a_spread_that_is_gone_is_said_in_words(judge):
    columns = {"reward_mean": np.where(LATE, -5.0, REWARD), "reward_std": np.where(LATE, 0.0, 0.5), **STAYS}
    assert "at step 150 and its spread fell to 0, while" in judge(RewardChanged(), columns)[0].message


def test_a_fall_with_another_spread_is_a_warning(clauses):
    columns = {"reward_mean": np.where(LATE, 0.4 * REWARD, REWARD), "reward_std": np.where(LATE, 0.1, 0.5) + noise(0.01, 6)}
    assert clauses(RewardChanged(), {**columns, **STAYS}) == [(153, "warning", "worse")]


SHRINKS = {"reward_mean": np.where(LATE, 0.01 * REWARD, REWARD), **STAYS}


@pytest.mark.parametrize(
    "left",
    [
        {"reward_std": np.where(LATE, 0.005, 0.5), "advantage_std": np.where(LATE, 0.1, 0.5)},
        {"reward_std": np.where(LATE, 0.005, 0.5), "kl_penalty_reward": np.full(ROWS, -0.1)},
        {"kl_penalty_reward": np.full(ROWS, -0.1)},
    ],
    ids=["smaller advantages", "a larger penalty", "no spread logged"],
)
def test_a_reward_that_shrinks_to_nothing_is_critical_where_it_no_longer_decides(clauses, left):
    assert clauses(RewardChanged(), {**SHRINKS, **left})[-1][1:] == ("critical", "drowned")


@pytest.mark.parametrize("normalised", [{"advantage_std": np.full(ROWS, 0.9)}, {}])
def test_another_scale_is_a_note_while_the_reward_decides(told, normalised):
    left = {"reward_std": np.where(LATE, 0.005, 0.5), **normalised}
    assert told(RewardChanged(), {**SHRINKS, **left}) == [(153, "note", "scaled")]


def test_a_fall_with_the_same_spread_is_a_note(notes):
    columns = {"reward_mean": np.where(LATE, REWARD - 2.0, REWARD), "reward_std": 0.5 + noise(0.01, 6)}
    assert notes(RewardChanged(), {**columns, **STAYS}) == [(153, "shifted")]


@pytest.mark.parametrize("moves", ["kl_mean", "entropy_mean", "rollout_length_mean"])
def test_a_policy_that_moves_at_the_same_row_is_no_change_of_the_reward(notes, where, moves):
    columns = {"reward_mean": np.where(LATE, REWARD - 5.0, REWARD), **STAYS, moves: np.where(LATE, 3.0, 1.0) * STAYS[moves]}
    assert notes(RewardChanged(), columns) == []
    assert [severity for _, severity in where(PolicyCollapse(), columns)] == ["critical"]


@pytest.mark.parametrize(
    "reward",
    [REWARD, np.where(AT == 150, -REWARD, REWARD), REWARD - 2.0 * np.clip((AT - 150) / 30.0, 0.0, 1.0)],
    ids=["no jump", "one row", "over thirty rows"],
)
def test_it_is_silent(notes, reward):
    assert notes(RewardChanged(), {"reward_mean": reward, **STAYS}) == []


def test_in_a_sparse_log_the_policy_could_have_learnt_within_the_row():
    from rldk.core.event import Event
    from rldk.judge.engine import Engine

    engine = Engine([RewardChanged(), PolicyCollapse()])
    for row in range(ROWS):
        metrics = {"reward_mean": float(REWARD[row] - (5.0 if LATE[row] else 0.0))}
        engine.observe(Event(10 * row, {**metrics, **{name: float(values[row]) for name, values in STAYS.items()}}))
    assert {anomaly.type for anomaly in engine.anomalies} == {"policy_collapse"} and engine.notes == []


def test_without_a_channel_of_the_policy_it_is_inactive(inactive):
    lacking = inactive(RewardChanged(), {"reward_mean": REWARD})
    assert lacking == [("reward_changed", ["kl_mean|entropy_mean|rollout_length_mean"])]
