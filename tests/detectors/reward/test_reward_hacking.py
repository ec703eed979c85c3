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
TOKEN = {"kl_mean": "token"}
KL = np.where(LATE, 3.5, 0.05)
HIGH_KL = np.where(LATE, 2.0, 0.05)
LONG = np.where(LATE, 500.0, 100.0)
SHARP = np.where(LATE, 0.01, 1.0)
ALIKE = np.where(LATE, 0.001, 0.3)


def held_out(before: float, after: float) -> list[float | None]:
    """Measured in every tenth row."""
    return [(after if row >= 150 else before) if row % 10 == 0 else None for row in range(ROWS)]


@pytest.mark.parametrize(
    "signs",
    [
        {},
        {"kl_mean": HIGH_KL},
        {"rollout_length_mean": LONG},
        {"reward_std": ALIKE},
        {"reward_std": ALIKE, "rollout_length_mean": 100.0 - 0.3 * AT},
        {"eval_accuracy": held_out(0.3, 0.6), "rollout_length_mean": LONG},
    ],
    ids=["alone", "a high KL", "length", "solved", "solved, with a length penalty", "held-out quality up"],
)
def test_learning_with_one_weak_sign_is_silent(where, signs):
    assert where(RewardHacking(), {"reward_mean": RISEN, **signs}, TOKEN) == []


def test_the_same_signs_without_a_gain_are_anothers(where):
    signs = {"kl_mean": KL, "rollout_length_mean": LONG, "entropy_mean": SHARP}
    assert where(RewardHacking(), {"reward_mean": 0.5 + noise(0.02), **signs}, TOKEN) == []
    assert where(RewardHacking(), {"reward_mean": np.where(LATE, 0.2, RISEN), **signs}, TOKEN) == []


@pytest.mark.parametrize(
    ("signs", "words", "clause"),
    [
        ({"kl_mean": KL}, "KL from the reference is 3.5 nats per token", "one_channel"),
        ({"kl_mean": HIGH_KL, "rollout_length_mean": LONG}, "responses grew from 100 to 500 tokens", "one_channel"),
        ({"entropy_mean": SHARP}, "entropy fell from 1 to 0.01", "entropy_alone"),
        ({"entropy_mean": SHARP, "reward_std": ALIKE}, "entropy fell from 1 to 0.01", "entropy_alone"),
        (
            {"eos_count": np.where(LATE, 0.0, 32.0)},
            "the share of responses that emit the end token fell from 100% to 0%",
            "one_channel",
        ),
    ],
    ids=["KL", "two weak signs", "entropy", "entropy of a solved task", "endings"],
)
def test_one_channel_is_a_warning(judge, signs, words, clause):
    (anomaly,) = judge(RewardHacking(), {"reward_mean": RISEN, **signs}, TOKEN)
    assert (anomaly.index, anomaly.severity, anomaly.clause, anomaly.since) == (159, "warning", clause, 152)
    assert words in anomaly.message and "evidence of reward hacking" in anomaly.message


@pytest.mark.parametrize(
    "signs",
    [
        {"kl_mean": KL, "rollout_length_mean": LONG},
        {"truncated_frac": np.where(LATE, 0.95, 0.05), "rollout_length_mean": LONG},
        {"kl_mean": KL, "entropy_mean": SHARP},
    ],
    ids=["KL and length", "endings and length", "KL and entropy"],
)
def test_two_channels_are_critical(clauses, signs):
    assert clauses(RewardHacking(), {"reward_mean": RISEN, **signs}, TOKEN) == [(156, "critical", "several_channels")]


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("eval_perplexity", 10.0, 30.0, "perplexity rose from 10 to 30"),
        ("eval_accuracy", 0.6, 0.3, "accuracy fell from 0.6 to 0.3"),
        ("eval_distinct_2", 0.8, 0.2, "diversity fell from 0.8 to 0.2"),
        ("eval_reward_mean", 0.5, 0.1, "reward fell from 0.5 to 0.1"),
    ],
)
def test_held_out_quality_that_falls_beside_another_sign_is_critical(judge, name, before, after, words):
    columns = {"reward_mean": RISEN, name: held_out(before, after), "rollout_length_mean": LONG}
    (anomaly,) = judge(RewardHacking(), columns, TOKEN)
    assert (anomaly.severity, anomaly.clause) == ("critical", "held_out") and anomaly.index in (153, 161)
    assert words in anomaly.message


def test_held_out_quality_that_falls_alone_is_a_warning_and_critical_where_it_lasts(clauses):
    columns = {"reward_mean": RISEN, "eval_accuracy": held_out(0.6, 0.3)}
    assert clauses(RewardHacking(), columns) == [(167, "warning", "one_channel"), (171, "critical", "held_out_alone")]


def test_it_clears_when_the_sign_is_gone(judge):
    kl = np.where((AT >= 150) & (AT < 250), 3.5, 0.05)
    (anomaly,) = judge(RewardHacking(), {"reward_mean": RISEN, "kl_mean": kl}, TOKEN)
    assert (anomaly.index, anomaly.cleared_index) == (159, 259), "from the first row in which it is gone"


def test_a_spike_of_a_few_rows_that_is_over_is_not_an_exploited_reward(where):
    """The median of five rows shows the spike for two rows after it."""
    spike = (AT >= 150) & (AT < 156)
    columns = {"reward_mean": RISEN, "kl_mean": np.where(spike, 3.5, 0.05), "grad_norm": np.where(spike, 55.0, 0.5)}
    assert where(RewardHacking(), columns, TOKEN) == []


def test_parts_of_a_reward_that_was_replaced_are_not_compared_with_the_whole(clauses):
    """The server of the reward fails: -1 for every response, of the whole and of its parts."""
    broken = AT >= 150
    quiet = np.random.default_rng(8).normal(0.0, 0.02, ROWS)
    columns = {
        "reward_mean": np.where(broken, -1.0, RISEN + quiet), "kl_mean": 0.05 + 0.1 * quiet, "entropy_mean": 1.0 + quiet,
        "reward_function_mean/accuracy": np.where(broken, -1.0, 0.3 + quiet), "rollout_length_mean": 100.0 + 50.0 * quiet,
    }  # fmt: skip
    assert [clause for *_, clause in clauses(RewardHacking(), columns, TOKEN) if clause == "hollow"] == []


@pytest.mark.parametrize(("kl", "found"), [(180.0, []), (600.0, []), (1200.0, [(159, "warning", "one_channel")])])
def test_a_kl_by_sequence_is_weighed_by_the_length(clauses, kl, found):
    columns = {"reward_mean": RISEN, "kl_mean": np.where(LATE, kl, 0.05), "rollout_length_mean": np.full(ROWS, 300.0)}
    assert clauses(RewardHacking(), columns, {"kl_mean": "sequence"}) == found


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("correctness", np.full(ROWS, 0.02), [(123, "warning", "hollow")]),
        ("correctness", np.full(ROWS, 0.12), [(123, "warning", "hollow")]),
        ("correctness", np.full(ROWS, 0.3), []),
        ("correctness", 0.02 + 0.3 * (RISEN - 0.2), []),
        ("format", np.full(ROWS, 0.02), []),
    ],
    ids=["nothing is right", "little is right", "a third is right", "more is right", "another component"],
)
def test_a_reward_whose_component_for_right_answers_has_no_part_in_it(clauses, name, values, found):
    columns = {"reward_mean": RISEN, f"reward_function_mean/{name}": values, "entropy_mean": np.ones(ROWS)}
    assert clauses(RewardHacking(), columns) == found


@pytest.mark.parametrize(
    ("lost", "rough", "found"),
    [(0.8, 0.005, ["warning", "critical"]), (0.4, 0.005, ["warning"]), (0.2, 0.005, []), (0.4, 0.1, []), (0.0, 0.1, [])],
)
def test_a_judge_that_falls_while_the_reward_rises(where, lost, rough, found):
    """The reward goes on rising, its judge has had its best at row 80 and loses a share of it over a hundred rows."""
    quality = np.minimum(AT / 80.0, 1.0) - lost * np.clip((AT - 80) / 100.0, 0.0, 1.0) + noise(rough, 1)
    columns = {"reward_mean": 2.0 * (1.0 - np.exp(-AT / 60.0)) + noise(0.01), "eval_reward_mean": quality}
    assert [severity for _, severity in where(RewardHacking(), columns)] == found


def test_a_reward_that_recovers_from_a_fall_in_the_first_rows_is_not_exploited(where):
    at = np.arange(120)
    kl = np.minimum(0.05 * at, 5.0)
    entropy = np.where(at < 20, 1.0, 5.0)
    recovers = np.where(at < 1, 0.5, -0.5 + 0.003 * at) + np.random.default_rng(0).normal(0.0, 0.01, 120)
    channels = {"kl_mean": kl, "entropy_mean": entropy, "truncated_frac": np.where(at < 20, 0.0, 1.0)}
    token = {"kl_mean": "token"}
    assert where(RewardHacking(), {"reward_mean": recovers, **channels}, token) == []
    assert where(RewardHacking(), {"reward_mean": recovers + np.where(at < 1, -1.0, 0.0), **channels}, token) != []


@pytest.mark.parametrize(
    ("end", "found"),
    [(0.02, ["answers_worse", "answers_lost"]), (0.15, ["answers_worse"]), (0.25, ["answers_worse"]), (0.4, []), (0.8, [])],
)
@pytest.mark.parametrize("name", ["reward_function_mean/accuracy_reward", "accuracy"])
@pytest.mark.parametrize("seed", range(3))
def test_answers_that_become_wrong_while_the_reward_rises(clauses, end, found, name, seed):
    """The format pays more than the answer, which is right less and less often."""
    chance, share = np.random.default_rng(seed), np.clip((AT - 60) / 120.0, 0.0, 1.0)
    accuracy = chance.binomial(64, 0.45 + (end - 0.45) * share) / 64
    form = chance.binomial(64, 0.1 + 0.88 * share) / 64
    columns = {
        "reward_mean": accuracy + form, name: accuracy, "reward_function_mean/format": form,
        "kl_mean": np.full(ROWS, 0.05),
    }  # fmt: skip
    assert [clause for *_, clause in clauses(RewardHacking(), columns, TOKEN)] == found


@pytest.mark.parametrize(
    ("name", "before", "after", "found"),
    [
        ("main", 0.6, 0.2, ["part_sinks"]),
        ("safety", 6.0, 2.0, ["part_sinks"]),
        ("main", 0.6, 0.5, []),
        ("length_penalty", 0.6, 0.2, []),
        ("brevity", -0.1, -0.6, []),
        ("correctness_0_to_2", 1.6, 0.5, ["answers_worse"]),
    ],
)
def test_a_part_that_sinks_while_the_whole_rises(clauses, name, before, after, found):
    """The other part pays for it, so that the reward has never been better."""
    share = np.clip((AT - 60) / 120.0, 0.0, 1.0)
    part = before + (after - before) * share + noise(0.02 * abs(before), 4)
    style = 10.0 * abs(before) * share + noise(0.02 * abs(before), 5)
    columns = {"reward_mean": part + style, f"reward_function_mean/{name}": part, "reward_function_mean/style": style}
    assert [clause for *_, clause in clauses(RewardHacking(), columns)] == found


def test_a_part_that_sank_is_not_over_when_the_whole_falls_as_well(judge):
    share, late = np.clip((AT - 60) / 60.0, 0.0, 1.0), np.clip((AT - 200) / 40.0, 0.0, 1.0)
    part = 0.8 - 0.5 * share + noise(0.01, 4)
    style = 2.0 * share - 1.5 * late + noise(0.01, 5)
    (found,) = judge(RewardHacking(), {"reward_mean": part + style, "reward_function_mean/main": part})
    assert found.clause == "part_sinks" and found.cleared_index is None


@pytest.mark.parametrize(
    ("name", "end", "found"),
    [
        ("exploited_frac", 0.04, []),
        ("exploited_frac", 0.2, [(159, "warning", "counted")]),
        ("exploited_frac", 0.7, [(154, "warning", "counted"), (159, "critical", "counted_often")]),
        ("eval_exploited_frac", 0.7, [(154, "warning", "counted"), (159, "critical", "counted_often")]),
    ],
)
def test_exploits_that_the_log_itself_counts_are_told_although_the_reward_is_flat(clauses, name, end, found):
    counted = 0.02 + (end - 0.02) * np.clip((AT - 145) / 20.0, 0.0, 1.0) + np.abs(noise(0.01, 3))
    assert clauses(RewardHacking(), {"reward_mean": 0.5 + noise(0.02), name: counted}) == found


def test_exploits_that_were_as_common_at_the_start_are_not_news(where):
    counted = 0.35 + noise(0.05, 3)
    assert where(RewardHacking(), {"reward_mean": RISEN, "exploited_frac": counted}) == []
