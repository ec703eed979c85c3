"""A reward without signal: the same number in every row, or no spread between responses."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.reward.dead_reward import DeadReward
from rldk.judge.engine import Engine

ROWS = 200
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def flat(value: float) -> np.ndarray:
    return np.full(ROWS, value)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("level", [0.02, 1.0, -30.0])
def test_a_reward_that_varies_is_silent(where, level, seed):
    assert where(DeadReward(), {"reward_mean": level * (1.0 + noise(0.1, seed)), "reward_std": flat(0.3 * abs(level))}) == []


def test_a_solved_task_is_silent(where):
    solved = {"reward_mean": np.clip(AT / 80.0, 0.0, 1.0), "reward_std": np.where(AT < 80, 0.4, 0.0)}
    assert where(DeadReward(), solved) == []


def test_a_task_solved_from_the_start_has_spread_left(where):
    assert where(DeadReward(), {"reward_mean": 0.97 + noise(0.002), "reward_std": 0.15 + noise(0.01)}) == []


def test_a_constant_mean_with_spread_between_responses_is_silent(where):
    assert where(DeadReward(), {"reward_mean": flat(0.5), "reward_std": flat(0.5)}) == []


def test_every_response_at_the_cap_with_a_good_reward_is_silent(where):
    capped = {"reward_mean": 0.2 + AT / 400.0 + noise(0.02), "truncated_frac": flat(1.0), "eos_count": flat(0.0)}
    assert where(DeadReward(), capped) == []


def test_sparse_rows_between_are_silent(where):
    reward = [value if row % 3 == 0 else None for row, value in enumerate((0.4 + noise(0.05)).tolist())]
    assert where(DeadReward(), {"reward_mean": reward, "loss": flat(0.1)}) == []


def test_the_same_number_from_the_first_row_is_a_warning_after_ten_and_critical_after_twenty(judge):
    warning, critical = judge(DeadReward(), {"reward_mean": flat(0.0)})
    assert (warning.index, warning.severity, warning.clause, warning.since) == (11, "warning", "constant_early", 2)
    assert (critical.index, critical.severity, critical.clause) == (21, "critical", "constant")
    assert "the same number at 0 for 12 rows" in warning.message


def test_a_spread_of_zero_beside_it_is_critical_after_ten_and_clears(judge):
    reward = np.where(AT < 100, 0.0, AT / 200.0)
    early, anomaly = judge(DeadReward(), {"reward_mean": reward, "reward_std": np.where(AT < 100, 0.0, 0.4)})
    assert (early.index, early.severity, early.clause) == (9, "warning", "never_any")
    assert (anomaly.index, anomaly.severity, anomaly.clause, anomaly.cleared_index) == (11, "critical", "no_spread", 102)


def test_a_reward_that_becomes_constant_is_critical_after_eight_rows(clauses):
    assert clauses(DeadReward(), {"reward_mean": np.where(AT < 100, 0.4 + noise(0.05), 0.3)}) == [
        (111, "critical", "constant_of_late")
    ]


def test_a_constant_below_the_best_of_the_run_is_not_a_solved_task(clauses):
    """The reward was replaced by 1.0 after it had reached 1.4."""
    reward = np.where(AT < 100, np.clip(AT / 60.0, 0.0, 1.4) + noise(0.05), 1.0)
    assert clauses(DeadReward(), {"reward_mean": reward}) == [(111, "critical", "constant_of_late")]


def test_a_constant_above_the_best_that_came_in_one_row_is_not_a_solved_task(clauses):
    reward = np.where(AT < 100, np.clip(AT / 60.0, 0.0, 0.8) + noise(0.02), 1.4)
    channels = {"kl_mean": 0.05 + noise(0.001, 1), "entropy_mean": 1.0 + noise(0.01, 2)}
    assert clauses(DeadReward(), {"reward_mean": reward, **channels}) == [(111, "critical", "constant_of_late")]


@pytest.mark.parametrize("ceiling", [1.0, -0.5, 20.0])
def test_a_task_solved_at_any_ceiling_is_silent(where, ceiling):
    reward = ceiling - 3.5 + np.clip(AT / 20.0, 0.0, 3.5) + np.where(AT < 70, noise(0.05), 0.0)
    assert where(DeadReward(), {"reward_mean": reward, "reward_std": np.where(AT < 70, 0.4, 0.0)}) == []


@pytest.mark.parametrize("scale", [1.0, 10.5])
def test_groups_of_a_few_responses_that_mostly_reach_the_highest_reward_are_solved(where, scale):
    """With one group of four per row the reward jumps between a few values, and has no spread where all four are right."""
    right = np.random.default_rng(5).random((ROWS, 4)) < np.clip(AT / 60.0, 0.2, 0.97)[:, None]
    columns = {
        "reward_mean": scale * right.mean(axis=1), "reward_std": scale * right.std(axis=1),
        "reward_zero_std_frac": (right.std(axis=1) == 0.0).astype(float),
    }  # fmt: skip
    assert where(DeadReward(), columns) == []


def test_a_reward_of_one_from_the_first_row_leaves_nothing_to_learn(told):
    assert told(DeadReward(), {"reward_mean": flat(1.0), "reward_std": flat(0.0)}) == [(21, "warning", "full_marks")]
    assert told(DeadReward(), {"reward_mean": np.where(AT < 30, 0.5 + noise(0.1), 1.0)}) == []


@pytest.mark.parametrize(("spread", "found"), [(1e-7, [(73, "critical", "no_spread")]), (0.02, [])])
def test_a_spread_that_was_there_and_is_gone_up_to_rounding(clauses, spread, found):
    columns = {"reward_mean": np.where(AT < 60, 0.8, 0.5) + noise(0.05), "reward_std": np.where(AT < 60, 0.3, spread)}
    assert clauses(DeadReward(), columns) == found


def test_rewards_that_differ_between_prompts_and_not_between_responses(clauses):
    """The mean differs from row to row by far more than the responses of a row do: it is the prompts that differ."""
    of_prompts = {"reward_mean": 0.5 + noise(0.15), "reward_std": flat(0.01)}
    assert [(severity, clause) for _, severity, clause in clauses(DeadReward(), of_prompts)] == [
        ("warning", "prompts_differ"),
        ("critical", "prompts_decide"),
    ]
    learnt = {**of_prompts, "reward_mean": 0.01 * AT + noise(0.15)}
    assert [clause for _, _, clause in clauses(DeadReward(), learnt)] == ["prompts_differ"]
    assert clauses(DeadReward(), {**of_prompts, "reward_mean": np.exp(0.3 * AT)}) == []  # it grows
    for spread in (0.06, 0.3):
        assert clauses(DeadReward(), {**of_prompts, "reward_std": flat(spread)}) == []


def test_a_reward_that_is_scaled_down_does_not_depend_on_prompts(clauses):
    scale = np.where(AT < 100, 1.0, 0.01)
    columns = {"reward_mean": scale * (0.5 + noise(0.1)), "reward_std": scale * 0.3}
    assert clauses(DeadReward(), columns) == []


def test_a_spread_that_is_often_zero_in_small_batches_is_silent(where):
    seldom = np.random.default_rng(1).random(ROWS) < 0.6
    assert where(DeadReward(), {"reward_mean": 0.9 + noise(0.03), "reward_std": np.where(seldom, 0.0, 0.1)}) == []


@pytest.mark.parametrize(
    ("share", "found"),
    [(1.0, [(76, "critical", "dead_groups")]), (0.97, [(101, "warning", "hardly_any_groups")]), (0.95, [])],
)
def test_groups_of_which_none_has_a_spread(clauses, share, found):
    columns = {"reward_mean": 0.5 + noise(0.05), "reward_zero_std_frac": np.where(AT < 60, 0.3, share)}
    assert clauses(DeadReward(), columns) == found


def test_dead_groups_count_from_the_first_row_whatever_the_spread_of_the_batch(clauses):
    """A reward that depends on the prompt alone: the batch has a spread, and no group has."""
    columns = {"reward_mean": 0.5 + noise(0.05), "reward_std": flat(0.4), "reward_zero_std_frac": flat(1.0)}
    assert clauses(DeadReward(), columns) == [(16, "critical", "dead_groups")]


def test_normalised_advantages_of_zero_show_groups_without_a_spread(clauses):
    """Rounding leaves a spread of 1e-7 in groups of equal rewards, so that none of them counts as one without a spread."""
    columns = {"reward_mean": 0.5 + noise(0.05), "reward_std": flat(0.4), "reward_zero_std_frac": flat(0.0)}
    columns |= {"advantage_normalized": flat(1.0), "advantage_std": flat(4e-4)}
    assert clauses(DeadReward(), columns) == [(18, "critical", "dead_groups")]
    assert clauses(DeadReward(), {**columns, "advantage_std": flat(0.2)}) == []
    assert clauses(DeadReward(), {**columns, "advantage_normalized": flat(0.0)}) == []
    assert clauses(DeadReward(), {**columns, "advantage_raw": flat(1.0)}) == []


def test_advantages_that_are_all_the_same_need_no_norm(clauses):
    columns = {"reward_mean": 0.5 + noise(0.3), "advantage_mean": 0.3 + noise(0.5)}
    assert clauses(DeadReward(), {**columns, "advantage_std": flat(0.0)}) == [(18, "critical", "dead_groups")]
    assert clauses(DeadReward(), {**columns, "advantage_std": np.where(AT % 4 == 0, 0.2, 0.0)}) == []


def test_a_reward_printed_with_two_digits_is_silent(where):
    assert where(DeadReward(), {"reward_mean": np.round(0.5 + noise(0.004), 2)}) == []


@pytest.mark.parametrize("zero", [5.0, -5.0, 50.0])
def test_a_reward_may_have_any_zero(where, zero):
    """Small changes of a large number are changes: what a reward model gives is off by a constant of its own."""
    learning = zero + 0.3 * AT / ROWS + noise(0.02)
    assert where(DeadReward(), {"reward_mean": learning}) == []


def test_a_reward_of_none_is_not_the_same_number():
    """What is not there is told by `missing_reward` and `nonfinite_metric`."""
    engine = Engine([DeadReward()])
    for row in range(60):
        engine.observe(Event(row, {"loss": 0.1}, nulls=("reward_mean",)))
    assert engine.anomalies == []


def test_the_patience_can_be_set(clauses):
    assert clauses(DeadReward(persist=50), {"reward_mean": flat(0.0)}) == [(51, "critical", "constant")]


def test_without_a_reward_the_share_of_right_answers_stands_for_it(where):
    moving = 0.5 + noise(0.1)[:60]
    assert where(DeadReward(), {"accuracy": [0.0] * 60}) == [(11, "warning"), (21, "critical")]
    assert where(DeadReward(), {"accuracy": [0.0] * 60, "reward_mean": moving}) == []


def test_rewards_that_fade_while_the_policy_stays(told):
    at = np.arange(100)
    fades = {
        "reward_mean": -0.3 / (1 + at) + np.random.default_rng(0).normal(0.0, 0.02, 100) / (1 + at),
        "reward_std": 0.35 / (1 + at),
        "entropy_mean": np.full(100, 1.3),
        "kl_mean": np.full(100, 0.02),
    }
    token = {"kl_mean": "token"}
    assert [clause for *_, clause in told(DeadReward(), fades, token)][:1] == ["fading"]
    learnt = {**fades, "entropy_mean": np.linspace(1.3, 0.2, 100), "kl_mean": np.linspace(0.0, 1.0, 100)}
    assert [clause for *_, clause in told(DeadReward(), learnt, token)] == []


def test_updates_without_any_gradient_are_told_after_five(told):
    nothing = {"reward_mean": np.zeros(6), "reward_std": np.zeros(6), "grad_norm": np.zeros(6)}
    assert told(DeadReward(), nothing) == [(4, "warning", "never_any")]
    for metric, row in (("reward_std", 1), ("grad_norm", 0)):  # some signal, once
        some = {name: values.copy() for name, values in nothing.items()}
        some[metric][row] = 0.3
        assert told(DeadReward(), some) == []


def test_without_a_gradient_in_the_log_it_takes_eight_rows_without_a_spread(told):
    alternating = {"reward_mean": np.where(AT[:10] % 3, 6.5, -1.5), "reward_std": np.zeros(10)}
    assert told(DeadReward(), alternating) == [(9, "warning", "never_any")]
    assert told(DeadReward(), {name: values[:8] for name, values in alternating.items()}) == []


def test_groups_that_begin_to_differ_after_a_dead_start_are_not_critical(clauses):
    """A hard task scores nothing at first: a row with a spread now and then is the first success."""
    first = np.where(np.isin(AT, (12, 16, 17, 18)), 0.75, np.where(AT < 19, 1.0, 0.25))
    assert clauses(DeadReward(), {"reward_zero_std_frac": first}) == []
    late = np.where(AT < 60, 0.3, np.where(np.isin(AT, (70, 74)), 0.75, 1.0))  # groups that had a spread have lost it
    assert clauses(DeadReward(), {"reward_zero_std_frac": late}) == [(89, "critical", "dead_groups")]


def test_very_small_rewards_are_no_rounding(clauses):
    small = {"reward_mean": 1e-6 * (0.5 + noise(0.05)), "reward_std": flat(4e-7)}
    assert clauses(DeadReward(), small) == []


@pytest.mark.parametrize(("level", "left"), [(0.0, 1e-8), (0.5, 1e-7), (300.0, 3e-5)])
def test_what_rounding_leaves_of_a_spread_of_zero_is_none(clauses, level, left):
    """Trainers add a little to a spread, and single precision leaves some of a large reward."""
    columns = {"reward_mean": flat(level), "reward_std": flat(left)}
    assert ("critical", "no_spread") in [tuple(said) for _, *said in clauses(DeadReward(), columns)]
