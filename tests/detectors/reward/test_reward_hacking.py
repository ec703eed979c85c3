"""A reward that rises on the wrong ground needs evidence from channels that do not feed it."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.reward_hacking import RewardHacking

ROWS = 300
AT = np.arange(ROWS)
LATE = AT >= 150


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


RISEN = 0.2 + 0.6 * np.clip((AT - 100) / 100.0, 0.0, 1.0) + noise(0.01)
KL = np.where(LATE, 2.0, 0.05)
LONG = np.where(LATE, 400.0, 100.0)
SHARP = np.where(LATE, 0.05, 1.0)
ALIKE = np.where(LATE, 0.001, 0.3)


def held_out(before: float, after: float) -> list[float | None]:
    """Measured in every tenth row."""
    return [(after if row >= 150 else before) if row % 10 == 0 else None for row in range(ROWS)]


@pytest.mark.parametrize(
    "signs",
    [
        {},
        {"kl_mean": KL},
        {"kl_mean": KL, "rollout_length_mean": LONG},
        {"entropy_mean": SHARP, "reward_std": ALIKE},
        {"reward_std": ALIKE, "rollout_length_mean": 100.0 - 0.3 * AT},
        {"eval_accuracy": held_out(0.3, 0.6), "kl_mean": KL, "rollout_length_mean": LONG},
    ],
    ids=["alone", "KL", "KL and length", "sharp and solved", "solved, with a length penalty", "held-out quality up"],
)
def test_learning_with_fewer_signs_is_silent(where, signs):
    assert where(RewardHacking(), {"reward_mean": RISEN, **signs}, {"kl_mean": "token"}) == []


def test_the_same_signs_without_a_gain_are_anothers(where):
    signs = {"kl_mean": KL, "rollout_length_mean": LONG, "entropy_mean": SHARP, "reward_std": ALIKE}
    assert where(RewardHacking(), {"reward_mean": 0.5 + noise(0.02), **signs}, {"kl_mean": "token"}) == []
    assert where(RewardHacking(), {"reward_mean": np.where(LATE, 0.2, RISEN), **signs}, {"kl_mean": "token"}) == []


def test_three_signs_are_a_warning(judge):
    signs = {"kl_mean": KL, "rollout_length_mean": LONG, "reward_std": ALIKE}
    (anomaly,) = judge(RewardHacking(), {"reward_mean": RISEN, **signs}, {"kl_mean": "token"})
    assert (anomaly.index, anomaly.severity, anomaly.since) == (153, "warning", 152)
    for word in ("KL is 2", "responses have grown to 400 tokens", "spread of rewards is gone", "evidence of reward hacking"):
        assert word in anomaly.message


def test_without_held_out_quality_it_is_never_critical(where):
    signs = {"kl_mean": KL, "rollout_length_mean": LONG, "entropy_mean": SHARP, "reward_std": ALIKE}
    assert where(RewardHacking(), {"reward_mean": RISEN, **signs}, {"kl_mean": "token"}) == [(153, "warning")]


@pytest.mark.parametrize(
    ("name", "before", "after", "word"),
    [
        ("eval_perplexity", 10.0, 30.0, "perplexity rose from 10 to 30"),
        ("eval_accuracy", 0.6, 0.3, "accuracy fell from 0.6 to 0.3"),
        ("eval_distinct_2", 0.8, 0.2, "diversity fell"),
        ("eval_reward_mean", 0.5, 0.1, "reward fell"),
    ],
)
def test_held_out_quality_counts_twice(judge, name, before, after, word):
    found = judge(
        RewardHacking(),
        {"reward_mean": RISEN, name: held_out(before, after), "kl_mean": KL, "rollout_length_mean": LONG},
        {"kl_mean": "token"},
    )
    assert [(anomaly.index, anomaly.severity) for anomaly in found] == [(153, "critical")]
    assert word in found[0].message


@pytest.mark.parametrize(("quality", "found"), [(held_out(0.6, 0.2), ["critical"]), (held_out(0.6, 0.6), [])])
def test_a_gain_within_twice_the_noise_counts_if_held_out_quality_has_fallen(where, quality, found):
    reward = np.where(LATE, 0.75, 0.5 + noise(0.15))
    signs = {"eval_accuracy": quality, "kl_mean": KL, "reward_std": ALIKE, "rollout_length_mean": LONG}
    assert [severity for _, severity in where(RewardHacking(), {"reward_mean": reward, **signs}, {"kl_mean": "token"})] == found


def test_it_clears_when_the_signs_are_gone(judge):
    back = (AT >= 150) & (AT < 250)
    signs = {
        "kl_mean": np.where(back, 2.0, 0.05),
        "rollout_length_mean": np.where(back, 400.0, 100.0),
        "reward_std": np.where(back, 0.001, 0.3),
    }
    (anomaly,) = judge(RewardHacking(), {"reward_mean": RISEN, **signs}, {"kl_mean": "token"})
    assert (anomaly.index, anomaly.cleared_index) == (153, 261)


def test_a_kl_by_sequence_is_weighed_by_its_own_scale(where):
    signs = {"reward_mean": RISEN, "kl_mean": KL, "rollout_length_mean": LONG, "reward_std": ALIKE}
    assert where(RewardHacking(), signs, {"kl_mean": "sequence"}) == []
    assert where(RewardHacking(), {**signs, "kl_mean": 20.0 * KL}, {"kl_mean": "sequence"}) == [(153, "warning")]


OVERSHOT = {  # the reward goes on rising, its judge has had its best at row 80
    "reward_mean": 2.0 * (1.0 - np.exp(-AT / 60.0)) + noise(0.01),
    "kl_mean": 0.05 * AT,
}


def judged(lost: float, rough: float = 0.0) -> np.ndarray:
    """A judge's reward that rises to 1, and then loses a share of that over a hundred rows."""
    return np.minimum(AT / 80.0, 1.0) - lost * np.clip((AT - 80) / 100.0, 0.0, 1.0) + noise(rough, 1)


def test_a_judge_that_falls_far_while_reward_and_kl_rise_is_critical(judge):
    (anomaly,) = judge(RewardHacking(), {**OVERSHOT, "eval_reward_mean": judged(0.5)}, {"kl_mean": "sequence"})
    assert (anomaly.index, anomaly.severity) == (164, "critical")  # when the KL is twice what it was at the judge's best
    assert "held-out reward fell from 0.99 to" in anomaly.message


@pytest.mark.parametrize(("lost", "rough", "found"), [(0.2, 0.005, ["warning"]), (0.0, 0.1, []), (0.1, 0.005, [])])
def test_a_judge_that_falls_a_little_is_told_where_that_is_beyond_its_noise(judge, lost, rough, found):
    anomalies = judge(RewardHacking(), {**OVERSHOT, "eval_reward_mean": judged(lost, rough)}, {"kl_mean": "sequence"})
    assert [anomaly.severity for anomaly in anomalies] == found


def test_a_judge_that_fell_before_the_reward_rose_is_no_such_evidence(where):
    risen_late = np.where(AT < 100, 0.2, 0.8) + noise(0.01)
    fell = np.where(AT < 40, 1.0, 0.5) + noise(0.01, 1)
    assert where(RewardHacking(), {"reward_mean": risen_late, "eval_reward_mean": fell, "kl_mean": np.full(ROWS, 0.02)}) == []
