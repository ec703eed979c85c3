"""Preference training that has nothing left to separate and pushes on."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.preference.preference_degenerate import PreferenceDegenerate

ROWS = 200
AT = np.arange(ROWS)
GROWN = 0.1 * AT
SURE = np.clip(0.5 + AT / 60.0, 0.0, 1.0)
DEAD = np.where(AT < 100, 5.0, 0.05)


def test_easy_pairs_separated_quickly_are_silent(where):
    easy = {
        "preference_margin": np.clip(0.2 * AT, 0.0, 6.0),
        "preference_accuracy": SURE,
        "grad_norm": np.where(AT < 30, 5.0, 0.5),
    }
    assert where(PreferenceDegenerate(), easy) == []


def test_a_large_margin_with_a_living_gradient_is_silent(where):
    assert (
        where(PreferenceDegenerate(), {"preference_margin": GROWN, "preference_accuracy": SURE, "grad_norm": np.full(ROWS, 2.0)})
        == []
    )


def test_a_dead_gradient_with_a_small_margin_is_silent(where):
    assert (
        where(PreferenceDegenerate(), {"preference_margin": np.full(ROWS, 2.0), "preference_accuracy": SURE, "grad_norm": DEAD})
        == []
    )


def test_pairs_that_are_still_mixed_up_are_silent(where):
    mixed = {"preference_margin": GROWN, "preference_accuracy": np.full(ROWS, 0.8), "grad_norm": DEAD}
    assert where(PreferenceDegenerate(), mixed) == []


@pytest.mark.parametrize("pull", ["grad_norm", "loss"])
def test_a_margin_that_explodes_while_the_gradient_dies(judge, pull):
    (anomaly,) = judge(PreferenceDegenerate(), {"preference_margin": GROWN, "preference_accuracy": SURE, pull: DEAD})
    assert (anomaly.index, anomaly.severity, anomaly.since) == (106, "warning", 102)
    assert "The margin is 10" in anomaly.message


def test_it_is_critical_where_the_chosen_answers_are_unlearnt_too(judge):
    columns = {"preference_margin": GROWN, "preference_accuracy": SURE, "grad_norm": DEAD, "chosen_reward_mean": -0.05 * AT}
    found = judge(PreferenceDegenerate(), columns)
    assert [(anomaly.index, anomaly.severity) for anomaly in found] == [(105, "critical")]
    assert "the chosen answers have become less likely" in found[0].message


@pytest.mark.parametrize(("beta", "clause"), [(0.1, "flat"), (2.5, "flat"), (50.0, "flat_by_beta")])
def test_a_beta_far_beyond_recipes_makes_it_critical(judge, beta, clause):
    columns = {"preference_margin": GROWN, "preference_accuracy": SURE, "grad_norm": DEAD, "kl_coef": np.full(ROWS, beta)}
    (anomaly,) = judge(PreferenceDegenerate(), columns)
    assert (anomaly.clause, anomaly.severity) == (clause, "critical" if clause == "flat_by_beta" else "warning")


def test_a_margin_beyond_the_reach_of_any_gradient_is_critical(judge):
    found = judge(PreferenceDegenerate(), {"preference_margin": 3 * GROWN, "preference_accuracy": SURE, "grad_norm": DEAD})
    assert (found[-1].clause, found[-1].severity) == ("saturated", "critical")


def test_it_clears(judge):
    back = np.where((AT >= 100) & (AT < 150), 0.05, 5.0)
    (anomaly,) = judge(PreferenceDegenerate(), {"preference_margin": GROWN, "preference_accuracy": SURE, "grad_norm": back})
    assert (anomaly.index, anomaly.cleared_index) == (106, 156)


def test_its_own_metrics_are_followed_though_it_watches_but_one(where):
    """Whether a metric that it needs is seen must not hang on what other detectors look at."""
    columns = {"preference_margin": GROWN, "preference_accuracy": np.full(ROWS, 0.6), "loss": DEAD}
    assert where(PreferenceDegenerate(), columns) == []
    assert where(PreferenceDegenerate(), {**columns, "preference_accuracy": SURE}) == [(106, "warning")]


def test_a_loss_that_was_flat_from_the_first_row_is_told(judge):
    columns = {"preference_margin": [10.0] * 40, "preference_accuracy": [1.0] * 40, "loss": [4e-4] * 40, "grad_norm": [1e-3] * 40}
    found = [(anomaly.index, anomaly.severity, anomaly.clause) for anomaly in judge(PreferenceDegenerate(), columns)]
    assert found == [(13, "warning", "flat"), (28, "critical", "flat_for_long")]
    assert judge(PreferenceDegenerate(), {**columns, "loss": [0.01] * 40}) == []


@pytest.mark.parametrize(
    ("chosen", "rejected", "longer"), [(-80.0, -14.0, "chosen"), (-33.0, -14.0, "chosen"), (-14.0, -110.0, "rejected")]
)
def test_answers_of_very_different_likelihood_are_told_at_the_start(judge, chosen, rejected, longer):
    pairs = {
        "preference_margin": np.full(40, 0.5),
        "preference_accuracy": np.full(40, 0.9),
        "chosen_logp_mean": np.linspace(chosen, chosen - 5.0, 40),
        "rejected_logp_mean": np.full(40, rejected),
    }
    first = judge(PreferenceDegenerate(), pairs)[0]
    assert (first.index, first.severity, first.clause) == (5, "warning", "lopsided")
    assert f"the {longer} answers are far longer" in first.message
    assert first.advice.startswith("Compare the lengths")


@pytest.mark.parametrize(("chosen", "rejected"), [(-50.0, -30.0), (-30.0, -80.0), (-4.5, -1.1), (-0.9, -0.2)])
def test_answers_of_like_length_and_means_per_token_are_not_compared(told, chosen, rejected):
    pairs = {
        "preference_margin": np.full(40, 0.5),
        "preference_accuracy": np.full(40, 0.9),
        "chosen_logp_mean": np.full(40, chosen),
        "rejected_logp_mean": np.full(40, rejected),
    }
    assert told(PreferenceDegenerate(), pairs) == []


@pytest.mark.parametrize(("chosen", "found"), [(-88.0, [(4, "critical", "as_random")]), (-60.0, []), (-12.0, [])])
def test_answers_as_unlikely_as_random_tokens(told, chosen, found):
    """Twenty tokens from a vocabulary of 71: random ones have a log-probability of -85."""
    pairs = {
        "preference_margin": np.full(40, 0.1),
        "chosen_logp_mean": np.full(40, chosen),
        "rejected_logp_mean": np.full(40, chosen),
        "num_tokens": 960.0 * np.arange(1, 41),
        "batch_size": np.full(40, 24.0),
        "vocab_size": np.full(40, 71.0),
    }
    assert told(PreferenceDegenerate(), pairs) == found


@pytest.mark.parametrize(
    ("chosen", "rejected", "found"),
    [(2.6, 2.2, True), (2.6, -1.0, False), (4.0, 1.2, False), (0.6, 0.5, False), (-3.0, -5.0, False)],
)
def test_rejected_answers_that_rise_with_the_chosen_ones(told, chosen, rejected, found):
    rises = np.minimum(np.arange(60) / 30.0, 1.0)
    rewards = {
        "preference_margin": (chosen - rejected) * rises,
        "preference_accuracy": np.full(60, 0.7),
        "chosen_reward_mean": chosen * rises,
        "rejected_reward_mean": rejected * rises,
    }
    assert [clause for *_, clause in told(PreferenceDegenerate(), rewards)] == (["both_rise"] if found else [])


def test_a_loss_of_zero_at_absurd_margins_is_critical_after_two_rows(told):
    four = {"preference_margin": np.array([0.0, 27.0, 120.0, 142.0]), "loss": np.array([0.693, 0.16, 0.0, 0.0])}
    assert told(PreferenceDegenerate(), four) == [(3, "critical", "zero_loss")]
    four["loss"] = np.array([0.693, 0.16, 0.01, 0.004])
    assert told(PreferenceDegenerate(), four) == []


@pytest.mark.parametrize(
    ("loss", "found"), [(1e-4, [("warning", "flat"), ("critical", "flat_for_long")]), (5e-3, [("warning", "flat")])]
)
def test_a_loss_that_stays_below_a_thousandth_is_critical(judge, loss, found):
    columns = {
        "preference_margin": np.minimum(AT, 12.0),
        "preference_accuracy": SURE,
        "loss": np.where(AT < 30, 0.5, loss),
    }
    anomalies = judge(PreferenceDegenerate(), columns)
    assert [(anomaly.severity, anomaly.clause) for anomaly in anomalies] == found
    assert all(30 < anomaly.index < 75 for anomaly in anomalies)
