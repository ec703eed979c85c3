"""A reward that falls and stays down, and all the falls that are none."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.policy_collapse import PolicyCollapse

ROWS = 400
AT = np.arange(ROWS)
LEARNT = np.clip(0.1 + AT / 150.0, 0.0, 0.8)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def fallen(to: float = 0.1, until: int = ROWS) -> np.ndarray:
    """A reward of 0.8 that is gone from row 200 on."""
    return np.where((AT >= 200) & (until > AT), to, LEARNT) + noise(0.01)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (0.001, 0.0), (100.0, -50.0), (1.0, -5.0)])
def test_learning_is_silent(where, scale, offset, seed):
    assert where(PolicyCollapse(), {"reward_mean": offset + scale * (LEARNT + noise(0.05, seed))}) == []


def test_deep_dips_that_recover_are_silent(where):
    dips = np.where((AT > 100) & (AT % 40 < 7), 0.0, LEARNT)
    assert where(PolicyCollapse(), {"reward_mean": dips + noise(0.02)}) == []


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_zeros_and_ones_are_silent(where, rate):
    assert where(PolicyCollapse(), {"reward_mean": (np.random.default_rng(3).random(ROWS) < rate).astype(float)}) == []


def test_a_fall_within_the_noise_is_silent(where):
    assert where(PolicyCollapse(), {"reward_mean": np.where(AT < 200, 0.5, 0.2) + noise(0.4)}) == []


def test_rows_that_differ_more_than_the_fall_are_judged_by_their_mean(judge):
    right = np.random.default_rng(5).random(ROWS) < np.where(AT < 200, 0.8, 0.2)  # one question a row
    warning, critical = judge(PolicyCollapse(), {"reward_mean": right.astype(float)})
    assert (warning.severity, critical.severity) == ("warning", "critical")
    assert 225 < warning.index < critical.index < 300


def test_a_mean_that_fell_with_another_sign_of_damage_is_critical(judge):
    rng = np.random.default_rng(2)
    reward = np.clip(np.where(AT < 200, 0.7, 0.25) + rng.normal(0.0, 0.4, ROWS), 0.0, 1.1)
    entropy = np.where(AT < 190, 0.4, 4.0) + rng.normal(0.0, 0.05, ROWS)
    assert judge(PolicyCollapse(), {"reward_mean": reward}) == []
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": reward, "entropy_mean": entropy})
    assert anomaly.severity == "critical" and 225 < anomaly.index < 300
    assert "entropy has risen" in anomaly.message


def test_a_slow_decline_to_a_little_more_than_half_is_silent(where):
    assert where(PolicyCollapse(), {"reward_mean": np.where(AT < 200, 0.8, 0.8 - 0.001 * (AT - 200)) + noise(0.01)}) == []


def test_a_fall_is_waited_out_then_a_warning_then_critical(judge):
    warning, critical = judge(PolicyCollapse(), {"reward_mean": fallen(until=300)})
    assert (warning.index, warning.severity, warning.since) == (228, "warning", 202)
    assert (critical.index, critical.severity) == (251, "critical")
    assert warning.cleared_index == critical.cleared_index == 314
    assert warning.last_good_step == critical.last_good_step == 198
    assert "Reward fell from 0.8" in critical.message and "stayed down for 50 rows" in critical.message


def test_a_fall_by_half_is_never_critical_by_itself(where):
    assert where(PolicyCollapse(), {"reward_mean": fallen(to=0.3)}) == [(228, "warning")]


def test_with_another_sign_of_damage_it_is_critical_at_once(judge):
    entropy = np.where(AT < 200, 1.5, 0.01)
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": fallen(), "entropy_mean": entropy})
    assert (anomaly.index, anomaly.severity, anomaly.since) == (208, "critical", 202)
    assert "while entropy has collapsed" in anomaly.message


@pytest.mark.parametrize(
    ("sign", "values", "reductions", "index"),
    [
        ("entropy has risen", {"entropy_mean": (1.0, 5.0)}, {}, 208),
        ("responses run to the length limit", {"truncated_frac": (0.1, 0.95)}, {}, 208),
        ("response length has left its range", {"rollout_length_mean": (100.0, 900.0)}, {}, 208),
        ("response length has left its range", {"rollout_length_mean": (100.0, 5.0)}, {}, 208),
        ("the rewards' spread is gone", {"reward_std": (0.5, 0.001)}, {}, 219),
        ("KL has exploded", {"kl_mean": (0.05, 3.0)}, {"kl_mean": "token"}, 208),
        ("KL has exploded", {"kl_mean": (5.0, 90.0)}, {"kl_mean": "sequence"}, 208),
    ],
)
def test_every_sign_of_damage(judge, sign, values, reductions, index):
    columns = {name: np.where(AT < 200, before, after) for name, (before, after) in values.items()}
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": fallen(), **columns}, reductions)
    assert (anomaly.index, anomaly.severity) == (index, "critical")
    assert sign in anomaly.message


def test_a_spread_that_touches_zero_in_small_batches_is_no_sign(where):
    spread = np.where(AT % 8 < 3, 0.5, 0.0)  # of a few responses, often all score alike
    assert where(PolicyCollapse(), {"reward_mean": fallen(to=0.3), "reward_std": spread}) == [(228, "warning")]


def test_a_kl_summed_over_a_sequence_is_no_sign_at_nine(where):
    kl = {"kl_mean": np.where(AT < 200, 1.0, 9.0)}
    assert where(PolicyCollapse(), {"reward_mean": fallen(to=0.3), **kl}, {"kl_mean": "sequence"}) == [(228, "warning")]


def test_the_share_can_be_set(where):
    assert where(PolicyCollapse(share=0.95), {"reward_mean": fallen()}) == []
    assert where(PolicyCollapse(lasting=8), {"reward_mean": fallen()}) == [(211, "warning"), (217, "critical")]


def test_a_short_log_is_waited_for_less(where):
    short = np.concatenate([np.full(30, 0.8), np.full(30, 0.05)]) + noise(0.01)[:60]
    assert where(PolicyCollapse(), {"reward_mean": short}) == [(41, "warning"), (53, "critical")]


def test_a_length_that_was_the_same_long_before_is_no_sign(where):
    """Responses became short while the reward was good; when it falls for some rows, that is not why."""
    short = np.where(AT < 60, 100.0, 12.0)
    dip = {"reward_mean": np.where((AT > 200) & (AT < 215), 0.05, 0.8) + noise(0.01), "rollout_length_mean": short}
    assert where(PolicyCollapse(), dip) == []
    both = {**dip, "rollout_length_mean": np.where(AT < 200, 100.0, 12.0)}
    assert where(PolicyCollapse(), both) == [(209, "critical")]


SHORT = np.array([0.9, 0.95, 0.17, 0.03, *[0.01] * 20])


def test_all_that_is_lost_within_the_first_rows(judge):
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": SHORT, "entropy_mean": [0.2, 0.2, 3.0, *[7.0] * 21]})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.last_good_step) == (15, "critical", 4, None)
    assert anomaly.message == "Reward fell from 0.9 or more to 0.01 within the first rows, while entropy has risen."


@pytest.mark.parametrize(
    "columns",
    [
        {"reward_mean": SHORT, "entropy_mean": [0.2] * 24},
        {"reward_mean": [0.9, *SHORT[2:]], "entropy_mean": [0.2, *[7.0] * 23]},
        {"reward_mean": [*SHORT[:9], *[0.5] * 15], "entropy_mean": [0.2, 0.2, *[7.0] * 22]},
        {"reward_mean": [1.0, 1.0, *[0.0, 1.0, 0.0] * 7], "entropy_mean": [0.2, 0.2, *[7.0] * 21]},
    ],
    ids=["no sign of damage", "a single good row", "it comes back", "zeros and ones"],
)
def test_a_low_reward_after_good_first_rows_is_silent(where, columns):
    assert where(PolicyCollapse(), columns) == []


@pytest.mark.parametrize(
    ("name", "first", "later", "word"),
    [
        ("entropy_mean", 0.4, 0.01, "entropy has collapsed"),
        ("truncated_frac", 0.1, 1.0, "responses run to the length limit"),
        ("reward_std", 0.3, 0.001, "the rewards' spread is gone"),
        ("kl_mean", 0.01, 90.0, "KL has exploded"),
    ],
)
def test_every_sign_since_the_first_row(judge, name, first, later, word):
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": SHORT, name: [first, *[later] * 23]})
    assert anomaly.message.endswith(f"while {word}.")
