"""Preference training that unlearns the chosen answers, or learns nothing."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.preference.preference_unlearnt import PreferenceUnlearnt
from rldk.judge.engine import Engine

ROWS = 200
AT = np.arange(ROWS)
NOISE = np.random.default_rng(0).normal(0.0, 0.05, ROWS)


@pytest.mark.parametrize(
    ("level", "found"),
    [
        (-35.0, []),
        (-50.0, []),
        (-65.0, [(61, "warning", "sinking")]),
        (-85.0, [(57, "critical", "displaced")]),
    ],
)
def test_chosen_answers_that_become_unlikely(told, level, found):
    assert told(PreferenceUnlearnt(), {"chosen_logp_mean": np.where(AT < 50, -40.0, level)}) == found


def test_a_few_rows_are_no_fall(told):
    assert told(PreferenceUnlearnt(), {"chosen_logp_mean": np.where((AT < 50) | (AT > 54), -40.0, -85.0)}) == []


@pytest.mark.parametrize("level", [0.5, 0.2])
def test_pairs_that_are_not_told_apart_after_many_rows(told, level):
    ((index, *said),) = told(PreferenceUnlearnt(), {"preference_accuracy": level + NOISE})
    assert said == ["warning", "undecided"] and 40 <= index <= 60
    assert told(PreferenceUnlearnt(), {"preference_accuracy": (level + NOISE)[:index]}) == []


@pytest.mark.parametrize(("accuracy", "loss", "found"), [(0.55, 0.692, True), (0.63, 0.692, False), (0.55, 0.684, False)])
def test_a_loss_where_it_began_is_told_sooner(told, accuracy, loss, found):
    rows = {"preference_accuracy": np.full(40, accuracy), "loss": np.full(40, loss)}
    assert told(PreferenceUnlearnt(), rows) == ([(34, "warning", "undecided")] if found else [])


def test_pairs_that_are_told_apart_are_silent(told):
    assert told(PreferenceUnlearnt(), {"preference_accuracy": 0.7 + NOISE}) == []
    assert told(PreferenceUnlearnt(), {"preference_accuracy": np.where(AT < 30, 0.5, 0.8)}) == []


@pytest.mark.parametrize(
    ("beta", "found"),
    [(0.1, []), (0.5, []), (1.9, []), (2.0, "beta_huge"), (1e-3, "beta_tiny"), (0.01, []), (0.0, [])],
)
def test_a_beta_that_no_recipe_uses(told, beta, found):
    said = told(PreferenceUnlearnt(), {"preference_accuracy": np.full(20, 0.8), "kl_coef": np.full(20, beta)})
    assert [clause for *_, clause in said] == ([found] if found else [])


@pytest.mark.parametrize("beta", [10.0, 50.0])
def test_a_beta_beyond_every_recipe_is_critical(told, beta):
    found = told(PreferenceUnlearnt(), {"kl_coef": np.full(ROWS, beta), "preference_accuracy": 0.7 + NOISE})
    absurd = (1, "warning", "beta_absurd")
    assert found == ([absurd] if beta < 20.0 else [absurd, (7, "critical", "beta_beyond_recipes")])


def test_the_first_row_before_any_update_does_not_count():
    """All pairs are equal then, and none is in the right order: in a log of sixteen rows it would be half of the slow mean."""
    engine = Engine([PreferenceUnlearnt()])
    for row in range(40):
        engine.observe(Event(10 * row, {"preference_accuracy": 0.6 if row else 0.0}))
    assert engine.anomalies == []


@pytest.mark.parametrize(
    ("accuracy", "loss", "found"), [(0.62, 0.686, True), (0.62, 0.64, False), (0.75, 0.69, False), (0.52, 0.5, False)]
)
def test_pairs_that_are_hardly_ordered_while_the_loss_has_hardly_left_its_start(told, accuracy, loss, found):
    columns = {"preference_accuracy": np.full(120, accuracy), "loss": np.full(120, loss)}
    assert bool(told(PreferenceUnlearnt(), columns)) is found


def test_a_warm_up_is_waited_for(told):
    undecided = {"preference_accuracy": np.full(200, 0.5), "loss": np.full(200, 0.693)}
    rising = {**undecided, "lr": np.minimum(np.arange(200) / 150.0, 1.0) * 1e-6}
    (index, *said) = told(PreferenceUnlearnt(), rising)[0]
    assert (index >= 150, said) == (True, ["warning", "undecided"])
    assert told(PreferenceUnlearnt(), {**undecided, "lr": np.full(200, 1e-6)})[0][0] < 60


def evaluated(accuracy: float, loss: float) -> dict[str, list[float | None]]:
    """Held-out figures in every tenth row."""
    return {
        "eval_preference_accuracy": [accuracy if row % 10 == 9 else None for row in AT],
        "eval_loss": [loss if row % 10 == 9 else None for row in AT],
    }


@pytest.mark.parametrize(
    ("accuracy", "loss", "found"),
    [
        (0.48, 0.95, [(29, "warning", "held_out_chance"), (49, "critical", "held_out_worse")]),
        (0.48, 0.70, [(29, "warning", "held_out_chance")]),
        (0.62, 0.95, []),  # the order is learnt; a loss that rises with the size of margins is usual
        (0.74, 0.55, []),
    ],
)
def test_pairs_that_are_learnt_by_heart(told, accuracy, loss, found):
    learnt = {"preference_accuracy": np.clip(0.5 + AT / 50.0, 0.0, 0.95) + NOISE, "loss": np.clip(0.69 - AT / 200.0, 0.3, 1.0)}
    assert told(PreferenceUnlearnt(), {**learnt, **evaluated(accuracy, loss)}) == found


def test_held_out_pairs_that_were_in_order_and_are_less_so(told):
    learnt = {"preference_accuracy": np.clip(0.5 + AT / 50.0, 0.0, 0.95) + NOISE, "loss": np.clip(0.69 - AT / 200.0, 0.3, 1.0)}
    order = [0.68 - 0.12 * row / ROWS if row % 10 == 9 else None for row in AT]
    slipping = {**learnt, **evaluated(0.0, 0.87), "eval_preference_accuracy": order}
    ((index, *said),) = told(PreferenceUnlearnt(), slipping)
    assert said == ["warning", "held_out_slips"] and 100 < index < 180
    assert told(PreferenceUnlearnt(), {**slipping, **evaluated(0.68, 0.87)}) == [], "margins grow, and the order holds"


def test_held_out_pairs_at_chance_are_not_learnt_by_heart_where_the_others_are_at_chance_too(told):
    columns = {"preference_accuracy": 0.58 + NOISE, "loss": np.full(ROWS, 0.65), **evaluated(0.52, 0.7)}
    assert [clause for *_, clause in told(PreferenceUnlearnt(), columns) if clause.startswith("held_out")] == []


@pytest.mark.parametrize(("mean", "found"), [(0.0, True), (-0.5, True), (0.6, False)])
def test_margins_alone_show_whether_anything_is_learnt(told, mean, found):
    margins = mean + np.random.default_rng(3).normal(0.0, 1.0, ROWS)
    said = told(PreferenceUnlearnt(), {"preference_margin": margins})
    assert [(severity, clause) for _, severity, clause in said] == ([("warning", "no_margin")] if found else [])
    assert all(100 <= index <= 140 for index, *_ in said)
    ordered = {"preference_margin": margins, "preference_accuracy": np.full(ROWS, 0.8)}
    assert told(PreferenceUnlearnt(), ordered) == [], "the share of pairs in the right order says more"


@pytest.mark.parametrize(
    ("fallen", "found"),
    [(-84.0, [("note", "sinking")]), (-110.0, [("warning", "sinking")]), (-170.0, [("critical", "displaced")])],
)
def test_chosen_answers_may_become_unlikely_while_their_order_is_learnt(told, fallen, found):
    """Recipes with a beta of 0.01 halve and more than halve their log-probability, and are fine."""
    columns = {
        "chosen_logp_mean": np.where(AT < 50, -40.0, fallen) + NOISE, "preference_accuracy": np.clip(0.5 + AT / 100.0, 0.5, 0.78),
        "loss": np.clip(0.69 - AT / 400.0, 0.48, 0.7),
    }  # fmt: skip
    assert [(severity, clause) for _, severity, clause in told(PreferenceUnlearnt(), columns)] == found


@pytest.mark.parametrize("seed", range(5))
def test_lengths_that_vary_from_row_to_row_are_no_fall(told, seed):
    """With two pairs per row the sum over tokens varies by half of its size."""
    rows = -260.0 * np.clip(np.random.default_rng(seed).normal(1.0, 0.5, ROWS), 0.2, None)
    assert told(PreferenceUnlearnt(), {"chosen_logp_mean": rows, "preference_accuracy": 0.75 + NOISE}) == []


@pytest.mark.parametrize("pairs", [4, 16])
def test_an_order_that_was_learnt_and_is_lost(told, pairs):
    chance = np.random.default_rng(pairs)
    right = np.where(AT < 130, np.clip(0.5 + AT / 100.0, 0.5, 0.85), 0.56)
    fallen = chance.binomial(pairs, right) / pairs
    said = told(PreferenceUnlearnt(), {"preference_accuracy": fallen})
    assert [(severity, clause) for _, severity, clause in said] == [("warning", "unlearns")]
    assert 135 < said[0][0] < 175
    learnt = chance.binomial(pairs, np.clip(0.5 + AT / 100.0, 0.5, 0.85)) / pairs
    assert told(PreferenceUnlearnt(), {"preference_accuracy": learnt}) == []


def test_pairs_that_are_learnt_the_wrong_way_round(told):
    accuracy, loss = 0.5 - np.minimum(AT / 100.0, 0.25) + NOISE, 0.69 + np.minimum(AT / 50.0, 0.4)
    found = told(PreferenceUnlearnt(), {"preference_accuracy": accuracy, "loss": loss})
    assert found[-1][1:] == ("critical", "inverted") and found[-1][0] <= 60
    for level in (0.6, 0.73):
        quiet = told(PreferenceUnlearnt(), {"preference_accuracy": accuracy, "loss": np.full(ROWS, level)})
        assert "inverted" not in [clause for *_, clause in quiet], "the loss must agree"
    chance = told(PreferenceUnlearnt(), {"preference_accuracy": 0.5 + 3.0 * NOISE, "loss": np.full(ROWS, 0.7)})
    assert "inverted" not in [clause for *_, clause in chance]
