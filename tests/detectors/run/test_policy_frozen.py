"""A policy that does not move, by its weights or by the traces that moving leaves."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.run.policy_frozen import PolicyFrozen

ROWS = 100
AT = np.arange(ROWS)
ZERO = np.zeros(ROWS)
TOKEN = {"kl_mean": "token"}
SPREAD = np.full(ROWS, 0.3)
RISING = 0.2 + AT / ROWS + np.random.default_rng(0).normal(0.0, 0.02, ROWS)


def test_no_trainable_parameters_are_critical_in_the_first_row(told):
    assert told(PolicyFrozen(), {"policy_trainable_params": np.zeros(5)}) == [(0, "critical", "no_parameters")]
    assert told(PolicyFrozen(), {"policy_trainable_params": np.full(5, 1e6)}) == []


def test_weights_that_never_change(told):
    assert told(PolicyFrozen(), {"weight_change": ZERO}) == [(7, "critical", "weights_still")]
    assert told(PolicyFrozen(), {"weight_change": np.full(ROWS, 1e-9)}) == []
    assert told(PolicyFrozen(), {"weight_change": ZERO[:7]}) == []


def test_weights_that_change_overrule_all_traces(told):
    still = {"kl_mean": ZERO, "grad_norm": ZERO, "reward_std": SPREAD, "preference_margin": ZERO}
    assert told(PolicyFrozen(), {**still, "weight_change": np.full(ROWS, 1e-6)}) == []


def test_a_kl_that_stays_zero(told):
    assert told(PolicyFrozen(), {"kl_mean": ZERO, "reward_std": SPREAD}, TOKEN) == [(18, "critical", "kl_still")]
    unsure = told(PolicyFrozen(), {"kl_mean": ZERO, "reward_std": SPREAD})
    assert unsure == [(33, "critical", "kl_still")], "a column of somebody's own may never have been filled in"
    assert told(PolicyFrozen(), {"kl_mean": np.full(ROWS, 1e-5), "reward_std": SPREAD}) == []
    assert told(PolicyFrozen(), {"kl_mean": ZERO[:18], "reward_std": SPREAD[:18]}) == []


@pytest.mark.parametrize(
    "others",
    [{"kl_coef": ZERO}, {"kl_update": np.full(ROWS, 1e-3)}, {"reward_zero_std_frac": np.ones(ROWS)}, {"reward_std": ZERO}],
    ids=["not measured", "updates move it", "groups without spread", "no spread"],
)
def test_a_kl_of_zero_with_another_reason_is_silent(told, others):
    assert told(PolicyFrozen(), {"kl_mean": ZERO, **others}) == []


def test_a_kl_that_is_not_measured_while_the_reward_rises_is_silent(told):
    assert told(PolicyFrozen(), {"kl_mean": ZERO, "kl_coef": ZERO, "reward_mean": RISING, "grad_norm": np.ones(ROWS)}) == []


def test_a_gradient_of_zero_in_every_row_while_rewards_differ(told):
    assert told(PolicyFrozen(), {"grad_norm": ZERO, "reward_std": SPREAD}) == [(13, "critical", "no_gradient")]
    assert told(PolicyFrozen(), {"grad_norm": ZERO, "reward_std": ZERO}) == []


def test_a_gradient_of_zero_in_every_row_is_a_column_that_is_not_filled_where_ratios_are_clipped(told):
    columns = {"grad_norm": ZERO, "kl_mean": ZERO, "reward_std": SPREAD, "clip_frac": ZERO + 0.001}
    assert told(PolicyFrozen(), columns) == []


def test_a_gradient_of_zero_in_some_rows_is_normal(told):
    assert told(PolicyFrozen(), {"grad_norm": np.where(AT % 2, 1.0, 0.0), "reward_std": SPREAD}) == []
    assert told(PolicyFrozen(), {"grad_norm": np.where(AT == 0, 1.0, 0.0), "reward_std": SPREAD}) == []


def test_one_update_per_batch_is_normal(told):
    assert told(PolicyFrozen(), {"kl_update": ZERO, "clip_frac": ZERO, "grad_norm": np.ones(ROWS), "reward_std": SPREAD}) == []


def test_a_preference_margin_that_stays_zero(told):
    assert told(PolicyFrozen(), {"preference_margin": ZERO}) == [(12, "critical", "margin_still")]
    assert told(PolicyFrozen(), {"preference_margin": 1e-3 * AT}) == []


def test_a_preference_loss_that_does_not_leave_ln_2(told):
    columns = {"preference_margin": np.full(ROWS, 1e-3), "loss": np.full(ROWS, 0.6931)}
    assert told(PolicyFrozen(), columns) == [(46, "warning", "loss_still")]
    assert told(PolicyFrozen(), {**columns, "preference_margin": np.full(ROWS, 0.02)}) == []
    assert told(PolicyFrozen(), {**columns, "loss": 0.6931 - 5e-4 * AT}) == []


def test_a_preference_loss_that_never_leaves_ln_2_is_critical_where_beta_is_known_and_the_warm_up_is_over(told):
    still = {"preference_margin": np.full(ROWS, 1e-3), "loss": np.full(ROWS, 0.6931), "kl_coef": np.full(ROWS, 0.1)}
    assert told(PolicyFrozen(), {**still, "lr": np.full(ROWS, 1e-6)})[-1][1:] == ("critical", "loss_never_left")
    assert [clause for *_, clause in told(PolicyFrozen(), {**still, "lr": 1e-6 * (1.0 + AT)})] == ["loss_still"]


def test_weights_that_stop_changing(told):
    stopped = np.where(AT < 30, 1e-4, 0.0)
    rate = np.full(ROWS, 1e-6)
    assert told(PolicyFrozen(), {"weight_change": stopped, "lr": rate}) == [(39, "critical", "weights_stopped")]
    assert told(PolicyFrozen(), {"weight_change": stopped, "lr": np.where(AT < 30, 1e-6, 0.0)}) == []  # the schedule has ended
    skipped = np.where(AT % 4 == 0, 0.0, 1e-4)
    assert told(PolicyFrozen(), {"weight_change": skipped, "lr": rate}) == []


def in_16_bits(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(float)


NORMS = np.random.default_rng(1).lognormal(0.0, 0.4, ROWS)
GUESSING = np.random.default_rng(2).normal(0.62, 0.04, ROWS)


def test_norms_of_16_bits_are_a_note_and_a_warning_where_preferences_are_hardly_learnt(told):
    note = (5, "note", "coarse")
    coarse = {"grad_norm": in_16_bits(NORMS), "preference_margin": 0.1 + NORMS}
    assert told(PolicyFrozen(), {**coarse, "preference_accuracy": GUESSING}) == [note, (58, "warning", "rounded_away")]
    assert told(PolicyFrozen(), {**coarse, "preference_accuracy": GUESSING + 0.2}) == [note]
    assert told(PolicyFrozen(), {**coarse, "preference_accuracy": GUESSING, "grad_norm": NORMS}) == []
    assert told(PolicyFrozen(), {"grad_norm": in_16_bits(NORMS), "reward_mean": RISING}) == [note]


def test_norms_that_are_logged_with_few_digits_say_nothing_about_their_bits(told):
    few = {"grad_norm": NORMS.round(1), "preference_margin": 0.1 + NORMS, "preference_accuracy": GUESSING}
    assert told(PolicyFrozen(), few) == []
    assert told(PolicyFrozen(), {**few, "grad_norm": in_16_bits(NORMS).round(6)}) != []  # six digits show it


UNDERSIZED = {"weight_change": np.full(ROWS, 1e-5), "lr": np.full(ROWS, 1e-3), "grad_norm": SPREAD, "reward_std": SPREAD}


def test_updates_far_below_the_learning_rate(judge, told):
    assert told(PolicyFrozen(), UNDERSIZED) == [(18, "warning", "undersized")]
    assert told(PolicyFrozen(), {**UNDERSIZED, "weight_change": np.full(ROWS, 3e-4)}) == []
    (early,) = judge(PolicyFrozen(), {**UNDERSIZED, "reward_mean": RISING})
    assert early.cleared_index == 24  # a reward that thrives shows that they suffice


@pytest.mark.parametrize(
    "other",
    [{"grad_norm": np.where(AT < 10, 0.5, 0.01)}, {"reward_std": ZERO}, {"lr": np.full(ROWS, 10.0)}, {"lr": ZERO}],
    ids=["gradients became small", "rewards do not differ", "an absurd rate", "a rate of zero"],
)
def test_small_updates_with_another_reason(told, other):
    assert told(PolicyFrozen(), {**UNDERSIZED, **other}) == []


@pytest.mark.parametrize(
    ("trained", "settings", "found"),
    [
        (320.0, {"beta": 0.1}, [(0, "warning", "mostly_frozen")]),
        (320.0, {"peft_config": {"r": 8}}, []),
        (320.0, {"lora_rank": 8}, []),
        (320.0, None, []),  # nothing is known of an adapter
        (50_000.0, {"beta": 0.1}, []),
    ],
)
def test_hardly_any_parameter_is_trained_without_an_adapter(told, trained, settings, found):
    sizes = {"policy_trainable_params": np.full(5, trained), "policy_total_params": np.full(5, 1e5)}
    assert told(PolicyFrozen(), sizes, None, settings) == found


def test_weights_that_stay_because_all_rewards_are_equal_are_no_frozen_policy(told):
    equal = {"weight_change": np.zeros(20), "reward_std": np.zeros(20), "reward_mean": np.full(20, 0.5)}
    assert told(PolicyFrozen(), equal) == []
    assert told(PolicyFrozen(), {**equal, "reward_std": np.full(20, 0.4)})[0][2] == "weights_still"


UNKNOWN = {"kl_mean": "unstated"}  # a table of somebody's own


def test_a_column_of_zeros_may_not_be_a_kl_and_is_waited_for_until_a_reward_that_rises_has_shown_it(told):
    noisy = 0.5 + np.random.default_rng(1).normal(0.0, 0.3, ROWS)
    assert told(PolicyFrozen(), {"kl_mean": ZERO, "reward_mean": noisy}, UNKNOWN) == [(33, "critical", "kl_still")]
    assert told(PolicyFrozen(), {"kl_mean": ZERO, "reward_mean": noisy + AT / 20.0}, UNKNOWN) == []
    assert told(PolicyFrozen(), {"kl_mean": ZERO, "kl_coef": ZERO + 0.1, "reward_mean": noisy}, UNKNOWN)[0][0] == 18
