"""Nothing was learnt: said once, late, and not of a reward that is high already."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.plateau import Plateau

ROWS = 1200
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gain", [0.3, -0.3])
def test_a_reward_that_goes_anywhere_is_silent(where, gain, seed):
    assert where(Plateau(), {"reward_mean": 0.4 + gain * AT / ROWS + noise(0.1, seed)}) == []


def test_a_reward_that_is_high_from_the_start_is_left_alone(where):
    assert where(Plateau(), {"reward_mean": np.clip(0.9 + noise(0.02), 0.0, 1.0)}) == []


@pytest.mark.parametrize(("spread", "row"), [(0.3, []), (0.9, [(599, "warning")])])
def test_a_reward_near_one_is_high_unless_its_spread_is_too_wide_for_a_share(where, spread, row):
    assert where(Plateau(), {"reward_mean": 0.85 + noise(0.05, 2), "reward_std": np.full(ROWS, spread)}) == row


def test_what_was_learnt_in_the_first_rows_was_learnt(where):
    """A line through the rest sees no rise, and some scatter."""
    learnt = 0.2 + 0.4 * np.minimum(AT / 40.0, 1.0) - np.where((AT > 480) & (AT < 580), 0.25, 0.0)
    assert where(Plateau(), {"reward_mean": learnt + noise(0.05)}) == []


def test_a_late_start_is_silent(where):
    assert where(Plateau(rows=1000), {"reward_mean": 0.2 + 0.5 * np.clip((AT - 500) / 300.0, 0.0, 1.0) + noise(0.05)}) == []


def test_short_runs_are_not_judged(where):
    assert where(Plateau(), {"reward_mean": (0.3 + noise(0.1))[:590]}) == []


def test_no_gain_in_six_hundred_rewards(judge):
    (anomaly,) = judge(Plateau(), {"reward_mean": 0.3 + noise(0.1, 2), "lr": np.full(ROWS, 1e-7)})
    assert (anomaly.index, anomaly.severity) == (599, "warning")
    assert "no more than chance explains" in anomaly.message
    assert "The learning rate is 1e-07 now." in anomaly.advice


def test_sooner_where_the_policy_has_not_moved(judge):
    (anomaly,) = judge(Plateau(), {"reward_mean": 0.3 + noise(0.1, 2), "kl_mean": np.full(ROWS, 1e-4)}, {"kl_mean": "token"})
    assert anomaly.index == 499
    assert "the policy has hardly moved" in anomaly.message


@pytest.mark.parametrize(("per", "row"), [("token", 599), ("sequence", 499)])
def test_whether_the_policy_has_moved_is_a_matter_of_the_kls_unit(judge, per, row):
    (anomaly,) = judge(Plateau(), {"reward_mean": 0.3 + noise(0.1, 2), "kl_mean": np.full(ROWS, 0.1)}, {"kl_mean": per})
    assert anomaly.index == row


def test_it_is_said_once(where):
    rises = np.where((AT >= 700) & (AT < 900), 3.0, 0.3)
    assert len(where(Plateau(), {"reward_mean": rises + noise(0.1, 2)})) == 1
