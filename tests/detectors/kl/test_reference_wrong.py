"""A reference that is the policy itself, or another model."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.detectors.kl.reference_wrong import ReferenceWrong
from rldk.judge.engine import Engine

ROWS = 100
ZERO = np.zeros(ROWS)
FLAT = 0.5 + np.random.default_rng(0).normal(0.0, 0.02, ROWS)
RISING = FLAT + np.arange(ROWS) / ROWS
SAME = [(13, "warning", "is_the_policy")]


def test_a_kl_of_zero_while_the_policy_moves(told):
    assert told(ReferenceWrong(), {"kl_mean": ZERO, "kl_update": np.full(ROWS, 0.01)}) == SAME
    assert told(ReferenceWrong(), {"kl_mean": ZERO, "weight_change": np.full(ROWS, 1e-3)}) == SAME
    ((index, *said),) = told(ReferenceWrong(), {"kl_mean": ZERO, "reward_mean": RISING})
    assert said == ["warning", "is_the_policy"] and index < 40


@pytest.mark.parametrize("first", [1e-4, 0.01])
def test_a_kl_of_zero_after_the_first_row(told, first):
    columns = {"kl_mean": np.where(np.arange(ROWS) == 0, first, 0.0), "kl_update": np.full(ROWS, 0.01)}
    assert [clause for *_, clause in told(ReferenceWrong(), columns)] == ["is_the_policy"]


def test_a_kl_of_zero_of_a_policy_that_does_not_move_is_anothers_defect(told):
    assert told(ReferenceWrong(), {"kl_mean": ZERO, "reward_mean": FLAT}) == []
    assert told(ReferenceWrong(), {"kl_mean": ZERO, "kl_update": ZERO}) == []
    assert told(ReferenceWrong(), {"kl_mean": ZERO, "weight_change": ZERO, "reward_mean": RISING}) == []
    assert told(ReferenceWrong(), {"kl_mean": ZERO, "weight_change": np.full(ROWS, 5e-6)}) == []  # a rate near zero


def test_a_kl_that_is_not_measured_says_nothing(told):
    columns = {"kl_mean": ZERO, "reward_mean": RISING}
    assert told(ReferenceWrong(), {**columns, "kl_coef": ZERO}) == []
    assert told(ReferenceWrong(), columns, settings=RunConfig.of({"kl_coefficient": 0.0})) == []  # set, and not logged
    assert told(ReferenceWrong(), columns, settings=RunConfig.of({"kl_coefficient": 0.1})) != []


def test_a_small_kl_is_not_zero(told):
    assert told(ReferenceWrong(), {"kl_mean": np.full(ROWS, 1e-5), "kl_update": np.full(ROWS, 0.01)}) == []


def test_objects_that_are_the_same(told):
    assert told(ReferenceWrong(), {"reference_is_policy": np.ones(20)}) == [(1, "warning", "shares_weights")]
    assert told(ReferenceWrong(), {"reference_is_policy": ZERO}) == []


def test_dropout_is_a_note(told):
    assert told(ReferenceWrong(), {"dropout_active": np.ones(20)}) == [(0, "note", "dropout")]
    assert told(ReferenceWrong(), {"dropout_active": ZERO}) == []


@pytest.mark.parametrize(("unit", "limit"), [("token", 0.1), ("sequence", 1.0), ("unstated", 1.0)])
def test_a_kl_far_from_zero_in_the_first_row_is_a_note(told, unit, limit):
    assert told(ReferenceWrong(), {"kl_mean": np.full(50, 2.0 * limit)}, unit) == [(0, "note", "is_another")]
    assert told(ReferenceWrong(), {"kl_mean": np.full(50, 0.9 * limit)}, unit) == []
    assert told(ReferenceWrong(), {"kl_mean": np.where(np.arange(50) < 1, 0.0, 2.0 * limit)}, unit) == []


@pytest.mark.parametrize(("unit", "kl", "found"), [("token", 1.5, "is_unrelated"), ("token", 0.9, "is_another")])
def test_a_kl_beyond_that_of_a_related_model_is_a_warning(told, unit, kl, found):
    assert [clause for *_, clause in told(ReferenceWrong(), {"kl_mean": np.full(50, kl)}, unit)] == [found]


@pytest.mark.parametrize(("kl", "found"), [(5.0, []), (100.0, [(0, "warning", "is_unrelated")])])
def test_updates_before_the_first_row_explain_a_large_kl_but_not_one_of_other_tokens(kl, found):
    engine = Engine([ReferenceWrong()], reductions={"kl_mean": "token"})
    for step in (10, 20, 30):
        engine.observe(Event(step, {"kl_mean": kl}))
    raised = [(anomaly.index, anomaly.severity, anomaly.clause) for anomaly in engine.anomalies]
    assert raised == found and not engine.notes


@pytest.mark.parametrize(("length", "found"), [(5.0, "is_unrelated"), (200.0, "is_another")])
def test_a_kl_per_response_is_compared_with_its_length(told, length, found):
    rows = {"kl_mean": np.full(50, 7.0), "rollout_length_mean": np.full(50, length)}
    assert [clause for *_, clause in told(ReferenceWrong(), rows, "sequence")] == [found]


def test_columns_that_are_not_filled_say_nothing_about_the_reference(told):
    moves = {"kl_mean": ZERO, "clip_frac": ZERO + 0.01}
    assert told(ReferenceWrong(), moves) == SAME
    assert told(ReferenceWrong(), {**moves, "grad_norm": ZERO}) == []


def test_a_column_of_zeros_in_a_table_of_unknown_origin_may_not_be_a_kl(told):
    columns = {"kl_mean": ZERO, "reward_mean": RISING}
    assert told(ReferenceWrong(), columns, "unstated") == []
    found = told(ReferenceWrong(), {**columns, "kl_coef": ZERO + 0.1}, "unstated")
    assert [clause for _, _, clause in found] == ["is_the_policy"]


@pytest.mark.parametrize(
    ("chosen", "rejected", "found"),
    [
        (14.8, 14.5, True), (1.2, 1.1, True), (0.8, 0.8, False),
        (10.4, 1.7, False),  # scores of a reward model
        (-3.0, -4.0, False),  # without a reference they are log-probabilities
    ],
)  # fmt: skip
def test_implicit_rewards_are_zero_in_the_first_row(told, chosen, rejected, found):
    rows = {"chosen_reward_mean": np.full(20, chosen), "rejected_reward_mean": np.full(20, rejected)}
    assert told(ReferenceWrong(), rows) == ([(0, "warning", "of_the_pairs")] if found else [])


def test_implicit_rewards_that_grow_later_are_not_the_reference(told):
    rows = {"chosen_reward_mean": np.arange(20.0), "rejected_reward_mean": np.arange(20.0) - 0.5}
    assert told(ReferenceWrong(), rows) == []
