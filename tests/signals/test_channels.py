"""Which channels have left their range: where each begins, and where it does not yet."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.judge.engine import Engine
from rldk.signals.channels import CHANNEL_METRICS, damage, harm
from rldk.signals.held_out import held_out_fall
from rldk.signals.kl import LIMIT, kl_level
from rldk.signals.view import View

ROWS = 60
LATE = np.arange(ROWS) >= 30


def view_of(columns, **reductions) -> View:
    engine = Engine([], follow=(*CHANNEL_METRICS, *columns), reductions=reductions)
    for row in range(ROWS):
        engine.observe(Event(row, {name: float(values[row]) for name, values in columns.items()}))
    return engine.view


def step(before: float, after: float) -> np.ndarray:
    return np.where(LATE, after, before)


@pytest.mark.parametrize(
    ("name", "before", "after", "near", "channel", "strong"),
    [
        ("entropy_mean", 1.0, 0.01, 0.05, "entropy", True),
        ("entropy_mean", 0.15, 0.01, 0.018, "entropy", True),
        ("entropy_mean", 1.0, 2.5, 1.9, "entropy", True),
        ("eos_frac", 0.9, 0.05, 0.5, "ending", True),
        ("eos_frac", 0.9, 0.2, 0.35, "ending", False),
        ("truncated_frac", 0.02, 0.95, 0.5, "ending", True),
        ("eos_count", 32.0, 0.0, 20.0, "ending", True),
        ("rollout_length_mean", 100.0, 500.0, 350.0, "length", False),
        ("rollout_length_mean", 100.0, 10.0, 30.0, "length", False),
        ("eval_perplexity", 10.0, 21.0, 19.0, "held_out", True),
        ("eval_accuracy", 0.6, 0.3, 0.55, "held_out", True),
        ("eval_reward_mean", 0.5, 0.1, 0.499, "held_out", True),
        ("chosen_logp_mean", -20.0, -45.0, -35.0, "preference", False),
        ("chosen_logp_mean", -20.0, -90.0, -35.0, "preference", True),
        ("grad_norm", 1.0, 12.0, 8.0, "gradients", False),
        ("grad_norm", 1.0, 1e-6, 1e-3, "gradients", False),
    ],
)
def test_each_channel_and_its_near_miss(name, before, after, near, channel, strong):
    ripple = 1.0 + 0.002 * np.sin(np.arange(ROWS))
    (sign,) = damage(view_of({name: step(before, after) * ripple}))
    assert (sign.channel, sign.strong) == (channel, strong) and sign.words
    assert damage(view_of({name: step(before, near) * ripple})) == ()


def test_a_differential_entropy_that_passes_zero_is_no_damage():
    assert damage(view_of({"entropy_mean": np.linspace(1.0, -3.0, ROWS)})) == ()


@pytest.mark.parametrize(
    ("kl", "unit", "length", "strain"),
    [
        (1.5, "token", None, 0.5),
        (25.0, "sequence", None, 0.5),
        (450.0, "sequence", 300.0, 0.5),
        (1.5, "token", 300.0, 0.5),
        (150.0, "sequence", 100.0, 1.5),  # a short text that the reference would not have written
        (1.5, "token", 100.0, 1.5),
        (40.0, "sequence", 8.0, 5.0 / 3.0),
        (0.5, "", None, 0.5 / LIMIT[""]),
    ],
)
def test_the_level_of_the_kl_in_units_of_its_limit(kl, unit, length, strain):
    columns = {"kl_mean": np.full(ROWS, kl)}
    if length is not None:
        columns["rollout_length_mean"] = np.full(ROWS, length)
    found = kl_level(view_of(columns, **({"kl_mean": unit} if unit else {})))
    assert found.strain == pytest.approx(strain)


def test_a_kl_per_token_and_per_response_are_the_same_level_where_the_length_is_known():
    length = {"rollout_length_mean": np.full(ROWS, 80.0)}
    token = kl_level(view_of({"kl_mean": np.full(ROWS, 0.4), **length}, kl_mean="token"))
    response = kl_level(view_of({"kl_mean": np.full(ROWS, 32.0), **length}, kl_mean="sequence"))
    assert token == response


def test_there_is_no_level_before_three_values():
    engine = Engine([], follow=("kl_mean",))
    engine.observe(Event(0, {"kl_mean": 90.0}))
    assert kl_level(engine.view).value != kl_level(engine.view).value


def test_harm_leaves_the_channel_itself_out_and_adds_a_reward_that_fell():
    view = view_of({"entropy_mean": step(1.0, 0.01), "reward_mean": np.where(LATE, 0.1, np.linspace(0.1, 2.0, ROWS))})
    assert [words.split()[0] for words in harm(view)] == ["entropy", "the"]
    assert [words.split()[0] for words in harm(view, besides="entropy")] == ["the"]


@pytest.mark.parametrize(("name", "zero"), [("eval_accuracy", 0.0), ("eval_reward_mean", 50.0)])
def test_a_held_out_fall_is_that_of_the_last_three_values_against_the_best_level(name, zero):
    engine = Engine([], follow=(name, "reward_mean"))
    for index, value in enumerate([0.5, 0.52, 0.5, 0.51, 0.5, 0.3, 0.1, 0.2]):
        engine.observe(Event(2 * index, {name: zero + value}))
        fall = held_out_fall(engine.view, name)
        engine.observe(Event(2 * index + 1, {"reward_mean": 0.5}))
        assert held_out_fall(engine.view, name) is fall, "it is measured once per value"
    assert (fall.best, fall.now, fall.lost) == pytest.approx((zero + 0.51, zero + 0.2, 0.31))
    assert fall.size == pytest.approx(0.51 if zero == 0.0 else fall.whole)
