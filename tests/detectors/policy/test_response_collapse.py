"""A policy that writes one text, or repeats itself."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.response_collapse import ResponseCollapse

ROWS = 200
AT = np.arange(ROWS)
LATE = AT >= 100
ONE_TEXT = np.where(LATE, 1 / 16, 0.95)
REPEATS = np.where(LATE, 0.9, 0.03)
LEARNING = np.clip(AT / 100.0, 0.0, 0.9) + np.random.default_rng(0).normal(0.0, 0.01, ROWS)
FALLEN = np.where(LATE, 0.1, 0.8) + np.random.default_rng(0).normal(0.0, 0.01, ROWS)
NO_END = {"eos_frac": np.where(LATE, 0.0, 0.95)}


def test_varied_text_is_silent(told):
    chance = np.random.default_rng(0)
    varied = {"distinct_responses_frac": chance.integers(10, 17, ROWS) / 16, "repetition_frac": chance.uniform(0.0, 0.3, ROWS)}
    assert told(ResponseCollapse(), varied) == []


def test_one_text_is_critical_after_five_rows(judge, told):
    (anomaly,) = judge(ResponseCollapse(), {"distinct_responses_frac": np.where(LATE & (AT < 150), 1 / 16, 0.95)})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (106, "critical", "one_text")
    assert (anomaly.since, anomaly.cleared_index) == (102, 159)
    assert anomaly.message == "The share of distinct responses fell from 95% to 6%."
    for few in (2, 4):
        passing = np.where(LATE & (AT - few < 100), 1 / 16, 0.95)
        assert told(ResponseCollapse(), {"distinct_responses_frac": passing}) == []


@pytest.mark.parametrize("level", [0.16, 0.3])
def test_a_few_texts_are_silent(told, level):
    assert told(ResponseCollapse(), {"distinct_responses_frac": np.where(LATE, level, 0.95)}) == []


def test_a_first_row_is_enough_to_fall_from(told):
    at_once = {"distinct_responses_frac": np.where(AT < 1, 1.0, 1 / 16)}
    assert told(ResponseCollapse(), at_once) == [(6, "critical", "one_text")]


def test_half_as_many_from_the_start_are_neither_varied_nor_one_text(told):
    assert told(ResponseCollapse(), {"distinct_responses_frac": np.where(LATE, 1 / 16, 0.4)}) == []


@pytest.mark.parametrize("reward", [LEARNING, np.clip(AT / 90.0, 0.0, 1.0)], ids=["thrives", "solved"])
def test_a_reward_that_thrives_makes_it_a_warning_unless_something_else_is_damaged(told, reward):
    one = {"distinct_responses_frac": ONE_TEXT, "reward_mean": reward}
    assert told(ResponseCollapse(), one) == [(106, "warning", "one_text")]
    low = {**one, "entropy_mean": np.where(LATE, 0.001, 1.0)}  # which is the same thing
    assert told(ResponseCollapse(), low) == [(106, "warning", "one_text")]
    assert told(ResponseCollapse(), one | NO_END) == [(106, "critical", "one_text")]


@pytest.mark.parametrize("reward", [np.full(ROWS, 0.5), FALLEN], ids=["flat", "fallen"])
def test_a_reward_with_nothing_to_show_excuses_nothing(told, reward):
    one = {"distinct_responses_frac": ONE_TEXT, "reward_mean": reward}
    assert told(ResponseCollapse(), one) == [(106, "critical", "one_text")]


@pytest.mark.parametrize(("generations", "found"), [(16, []), (8, [(106, "warning", "one_text")])])
def test_responses_to_a_single_prompt_may_become_alike_as_it_is_learnt(told, generations, found):
    run = {"distinct_responses_frac": ONE_TEXT, "rollout_buffer_size": np.full(ROWS, 16.0)}
    run["num_generations"] = np.full(ROWS, float(generations))
    assert told(ResponseCollapse(), run | {"reward_mean": LEARNING}) == found
    assert told(ResponseCollapse(), run | {"reward_mean": FALLEN}) == [(106, "critical", "one_text")]


def test_one_text_from_the_start_is_a_warning_after_eight_rows(told):
    one = {"distinct_responses_frac": np.full(ROWS, 1 / 8)}
    assert told(ResponseCollapse(), one) == [(7, "warning", "one_text_from_start")]
    assert told(ResponseCollapse(), {"distinct_responses_frac": np.where(AT < 7, 1 / 8, 1.0)}) == []


@pytest.mark.parametrize(
    ("name", "value", "silent"),
    [
        ("batch_size", 7.0, True),
        ("batch_size", 8.0, False),
        ("rollout_length_mean", 2.0, True),
        ("rollout_length_mean", 50.0, False),
    ],
)
def test_few_or_short_responses_are_alike_by_nature(told, name, value, silent):
    one = {"distinct_responses_frac": np.full(ROWS, 1 / 8), name: np.full(ROWS, value)}
    assert (told(ResponseCollapse(), one) == []) is silent


def test_repetition_is_a_warning_and_with_other_damage_critical(told):
    repeats = {"repetition_frac": REPEATS}
    assert told(ResponseCollapse(), repeats) == [(106, "warning", "repeats")]
    assert told(ResponseCollapse(), repeats | NO_END) == [(106, "critical", "repeats")]
    assert told(ResponseCollapse(), repeats | {"entropy_mean": np.where(LATE, 0.001, 1.0)}) == [(106, "critical", "repeats")]
    assert (106, "critical", "repeats") in told(ResponseCollapse(), repeats | {"reward_mean": FALLEN})


def test_repetition_that_a_thriving_reward_pays_for_is_a_warning(told):
    paid = {"repetition_frac": REPEATS, "reward_mean": LEARNING, "entropy_mean": np.where(LATE, 0.001, 1.0)}
    assert told(ResponseCollapse(), paid) == [(106, "warning", "repeats")]


@pytest.mark.parametrize(("start", "end"), [(0.03, 0.59), (0.65, 0.9), (0.8, 0.8)])
def test_text_that_is_not_repetitive_or_always_was_is_silent(told, start, end):
    assert told(ResponseCollapse(), {"repetition_frac": np.where(LATE, end, start)}) == []


def test_limits_can_be_set(told):
    assert told(ResponseCollapse(share=0.05), {"distinct_responses_frac": ONE_TEXT}) == []
    assert told(ResponseCollapse(repetition=0.95), {"repetition_frac": REPEATS}) == []


def test_a_sparse_log_needs_two_rows():
    from rldk.core.event import Event
    from rldk.judge.engine import Engine

    engine = Engine([ResponseCollapse()])
    for row in range(30):
        engine.observe(Event(10 * row, {"distinct_responses_frac": 0.95 if row < 15 else 1 / 16}))
    assert [(one.step, one.clause) for one in engine.anomalies] == [(180, "one_text")]


def test_responses_that_all_end_in_three_phrases_are_a_warning_although_the_reward_rises(told):
    varied = {"distinct_responses_frac": np.full(ROWS, 0.9), "reward_mean": LEARNING}
    fixed = varied | {"distinct_endings_frac": np.where(LATE, 3 / 32, 0.7)}
    assert told(ResponseCollapse(), fixed) == [(106, "warning", "few_endings")]
    assert told(ResponseCollapse(), varied | {"distinct_endings_frac": np.where(LATE, 0.25, 0.7)}) == []
    assert told(ResponseCollapse(), varied | {"distinct_endings_frac": np.where(LATE, 3 / 32, 0.4)}) == []  # never were varied


def test_groups_of_equal_responses_since_the_first_row_are_critical(judge, told):
    equal = {"distinct_responses_frac": np.full(ROWS, 1 / 8), "num_generations": np.full(ROWS, 8.0)}
    short = {**equal, "rollout_length_mean": np.full(ROWS, 4.0)}
    assert told(ResponseCollapse(), short) == [(7, "critical", "no_variety")]
    (anomaly,) = judge(ResponseCollapse(), {**short, "entropy_mean": np.full(ROWS, 1.2)})
    assert "sampling seems to be off" in anomaly.message and "Turn sampling on" in anomaly.advice
    assert told(ResponseCollapse(), {**short, "num_generations": np.full(ROWS, 16.0)}) == []
    varied = {**short, "distinct_responses_frac": np.where(AT % 7 == 3, 0.2, 1 / 8)}
    assert told(ResponseCollapse(), varied) == []


@pytest.mark.parametrize(("level", "length", "found"), [(0.25, 20.0, True), (0.15, 20.0, False), (0.25, 500.0, False)])
def test_short_responses_that_repeat_themselves_more_than_at_the_start(told, level, length, found):
    rows = {"repetition_frac": np.where(LATE, level, 0.03), "rollout_length_mean": np.full(ROWS, length)}
    assert told(ResponseCollapse(), rows) == ([(107, "warning", "repeats_more")] if found else [])
    assert told(ResponseCollapse(), {**rows, "repetition_frac": np.full(ROWS, level)}) == []


def test_one_text_per_prompt_is_not_one_text_for_all(told):
    """Five prompts with twelve responses each, which become equal within their group, or in all groups."""
    fall = {"rollout_buffer_size": np.full(ROWS, 60.0), "num_generations": np.full(ROWS, 12.0)}
    own, one = (np.where(np.arange(ROWS) < 20, 0.8, share) for share in (1 / 12, 1 / 60))
    assert told(ResponseCollapse(), {**fall, "distinct_responses_frac": own}) == []
    assert [clause for _, _, clause in told(ResponseCollapse(), {**fall, "distinct_responses_frac": one})] == ["one_text"]
