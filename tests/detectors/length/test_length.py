"""Responses that grow without end, shrink to nothing, or do not end; with a reward that rises none of it is trouble."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.length.eos_starvation import EosStarvation
from rldk.detectors.length.length_collapse import LengthCollapse
from rldk.detectors.length.length_runaway import LengthRunaway

ROWS = 300
AT = np.arange(ROWS)
KINDS = (LengthRunaway, LengthCollapse, EosStarvation)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


RISING = 0.2 + AT / 400.0 + noise(0.01)
STEADY = 0.5 + noise(0.01)
FALLEN = np.where(AT < 200, 0.8, 0.1) + noise(0.01)


def between(inside: float, outside: float, start: int = 100, end: int = 250) -> np.ndarray:
    return np.where(np.isin(AT, np.arange(start, end)), inside, outside)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_lengths_that_vary_are_silent(where, kind, seed):
    usual = {"rollout_length_mean": 200.0 * np.exp(noise(0.3, seed)), "truncated_frac": np.clip(0.1 + noise(0.1, seed), 0.0, 1.0)}
    assert where(kind(), {**usual, "reward_mean": STEADY}) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_response_at_the_cap_with_a_rising_reward_is_silent(where, kind):
    full = {"rollout_length_mean": np.full(ROWS, 512.0), "truncated_frac": np.ones(ROWS), "eos_frac": np.zeros(ROWS)}
    assert where(kind(), {**full, "reward_mean": RISING}) == []


@pytest.mark.parametrize("kind", [LengthRunaway, LengthCollapse])
def test_every_response_at_the_cap_from_the_start_is_how_the_run_is(where, kind):
    full = {"rollout_length_mean": np.full(ROWS, 512.0), "truncated_frac": np.ones(ROWS)}
    assert where(kind(), {**full, "reward_mean": STEADY}) == []


def test_reasoning_that_grows_with_the_reward_is_silent(where):
    growing = {"rollout_length_mean": 100.0 * np.exp(AT / 100.0), "truncated_frac": np.clip(AT / 250.0, 0.0, 1.0)}
    assert where(LengthRunaway(), {**growing, "reward_mean": RISING}) == []


def test_a_length_penalty_that_works_is_silent(where):
    assert where(LengthCollapse(), {"rollout_length_mean": np.maximum(300.0 - 2.0 * AT, 20.0), "reward_mean": RISING}) == []


def test_growth_below_the_factor_is_silent(where):
    assert where(LengthRunaway(), {"rollout_length_mean": between(380.0, 100.0), "reward_mean": STEADY}) == []


def test_responses_that_grow_for_nothing(judge):
    (anomaly,) = judge(LengthRunaway(), {"rollout_length_mean": between(500.0, 100.0), "reward_mean": STEADY})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (106, "warning", 102, 256)
    assert "500 tokens on average, from 100" in anomaly.message


def test_responses_that_fill_the_limit(judge):
    columns = {"rollout_length_mean": between(250.0, 100.0), "truncated_frac": between(0.95, 0.1), "reward_mean": STEADY}
    (anomaly,) = judge(LengthRunaway(), columns)
    assert (anomaly.index, anomaly.severity, anomaly.value, anomaly.threshold) == (106, "warning", 0.95, 0.9)
    assert anomaly.message.startswith("95% of the responses run to the length limit: 250 tokens on average")


def test_a_limit_that_is_filled_where_no_length_is_logged(judge):
    (anomaly,) = judge(LengthRunaway(), {"truncated_frac": between(0.95, 0.1)})
    assert anomaly.message == "95% of the responses run to the length limit; the reward is no better for it."


def test_growth_is_critical_once_the_reward_has_fallen(where):
    found = where(LengthRunaway(), {"rollout_length_mean": between(500.0, 100.0, 150, ROWS), "reward_mean": FALLEN})
    assert found == [(156, "warning"), (202, "critical")]


def test_responses_that_shrink_for_nothing(judge):
    (anomaly,) = judge(LengthCollapse(), {"rollout_length_mean": between(5.0, 100.0), "reward_mean": STEADY})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (109, "warning", 102, 256)
    assert "shrank from 100 to 5 tokens" in anomaly.message


def test_shrinking_is_critical_once_the_reward_has_fallen(where):
    found = where(LengthCollapse(), {"rollout_length_mean": between(5.0, 100.0, 150, ROWS), "reward_mean": FALLEN})
    assert found == [(159, "warning"), (202, "critical")]


def test_a_dip_of_the_reward_long_after_answers_became_short_is_not_theirs(where):
    short = {"rollout_length_mean": np.where(AT < 50, 300.0, 40.0), "reward_mean": np.where(between(1.0, 0.0, 220) > 0, 0.1, 0.6)}
    assert [severity for _, severity in where(LengthCollapse(), short)] == ["warning"]
    at_once = {**short, "reward_mean": np.where(AT < 100, 0.6, 0.1)}
    assert [severity for _, severity in where(LengthCollapse(), at_once)] == ["warning", "critical"]


def test_shrinking_to_a_quarter_is_silent(where):
    assert where(LengthCollapse(), {"rollout_length_mean": between(25.0, 100.0), "reward_mean": STEADY}) == []


@pytest.mark.parametrize(
    "columns",
    [
        {"eos_frac": between(0.0, 0.9)},
        {"eos_count": between(0.0, 30.0)},
        {"truncated_frac": between(1.0, 0.1)},
    ],
    ids=["share", "count", "cut off"],
)
def test_responses_that_no_longer_end(judge, columns):
    (anomaly,) = judge(EosStarvation(), {**columns, "reward_mean": STEADY})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (131, "warning", 102, 261)
    assert anomaly.message.startswith("None of the responses end by themselves")


def test_responses_that_never_ended(where):
    assert where(EosStarvation(), {"eos_frac": np.zeros(ROWS), "reward_mean": STEADY}) == [(33, "warning")]


def test_without_a_reward_it_is_inactive(inactive):
    assert inactive(EosStarvation(), {"eos_frac": np.zeros(ROWS)}) == [("eos_starvation", ["reward_mean"])]


def test_a_few_that_end_are_enough(where):
    assert where(EosStarvation(), {"eos_frac": np.full(ROWS, 0.05), "reward_mean": STEADY}) == []


def test_a_length_that_varies_as_much_from_row_to_row_is_silent(where):
    rng = np.random.default_rng(1)
    length = np.where(np.arange(ROWS) < 5, 20.0, np.exp(rng.normal(5.5, 0.8, ROWS)))  # one question a row
    reward = rng.binomial(8, 0.6, ROWS) / 8
    assert where(LengthRunaway(), {"rollout_length_mean": length, "reward_mean": reward}) == []
