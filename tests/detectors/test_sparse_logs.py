"""Logs with a row for every five, ten or twenty steps: few rows, each of which says more."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.base import View
from rldk.detectors.gradients.exploding_gradient_anomaly import ExplodingGradient
from rldk.detectors.gradients.vanishing_gradient_anomaly import VanishingGradient
from rldk.detectors.kl.kl_explosion import KlExplosion
from rldk.detectors.policy.entropy_collapse import EntropyCollapse
from rldk.detectors.reward.dead_reward import DeadReward
from rldk.detectors.reward.plateau import Plateau
from rldk.detectors.reward.policy_collapse import PolicyCollapse
from rldk.judge.engine import Engine
from rldk.signals.series import SeriesByName
from rldk.testing.streams import FAULTS, simulate

SEEDS = range(100, 112)


def found(detectors, columns, every):
    """The rows at which a detector raises, where a row stands for n steps."""
    engine = Engine(detectors, reductions={"kl_mean": "token"})
    for row in range(max(map(len, columns.values()))):
        engine.observe(Event((row + 1) * every, {name: float(values[row]) for name, values in columns.items()}))
    return [(anomaly.index, anomaly.severity) for anomaly in engine.anomalies]


def noisy(values, scale, seed=0):
    return values * np.exp(np.random.default_rng(seed).normal(0.0, scale, len(values)))


@pytest.mark.parametrize("every", [5, 10, 20])
@pytest.mark.parametrize("profile", ["ppo", "ppo_token", "grpo"])
def test_hardly_a_healthy_run_has_an_alarm(profile, every):
    """One in twelve may: of the simulated ones, some fall below their start for fifty steps while the entropy doubles."""
    criticals = warned = 0
    for seed in SEEDS:
        engine = Engine()
        for event in simulate(profile, 1000, seed, log_every=every).events:
            engine.observe(event)
        criticals += any(anomaly.severity == "critical" for anomaly in engine.anomalies)
        warned += bool(engine.anomalies)
    assert criticals <= 1 and warned <= 2


@pytest.mark.parametrize(
    "fault",
    [
        "policy_collapse", "entropy_collapse", "entropy_explosion", "kl_explosion", "clip_saturation", "learning_rate_too_high",
        "reward_saturation", "dead_reward", "length_runaway", "length_collapse", "eos_starvation", "value_unexplained",
        "vanishing_gradients", "throughput_drop", "length_bias",
    ],
)  # fmt: skip
def test_faults_are_caught_in_fifty_to_two_hundred_rows(fault):
    caught = 0
    for seed in SEEDS:
        profiles, every = FAULTS[fault].profiles, (5, 10, 20)[seed % 3]
        stream = simulate(profiles[seed % len(profiles)], 1000, seed, fault, log_every=every)
        engine = Engine()
        for event in stream.events:
            engine.observe(event)
        caught += any(anomaly.type in FAULTS[fault].expects for anomaly in engine.anomalies)
    assert caught >= len(SEEDS) - 2


def test_a_sudden_rise_of_the_kl_is_seen_in_sixty_rows_of_ten_steps():
    kl = noisy(np.where(np.arange(60) < 30, 0.05, 0.6), 0.1)
    ((row, severity),) = found([KlExplosion()], {"kl_mean": kl}, 10)
    assert 33 <= row <= 45 and severity == "warning"
    assert found([KlExplosion()], {"kl_mean": kl}, 1) == []  # sixty steps are the start of a run


def test_a_kl_that_grows_with_the_square_of_time_is_silent():
    kl = 0.4 * (np.arange(1, 101) / 100.0) ** 2
    assert found([KlExplosion()], {"kl_mean": noisy(kl, 0.1)}, 10) == []


def test_an_entropy_that_falls_all_at_once_beside_a_good_reward():
    rows = np.arange(80)
    entropy, reward = np.where(rows < 40, 0.5, 0.01), 0.2 + 0.7 * np.minimum(rows / 30.0, 1.0)
    assert found([EntropyCollapse()], {"entropy_mean": noisy(entropy, 0.05), "reward_mean": reward}, 10) == [(43, "warning")]


@pytest.mark.parametrize(("half", "expected"), [(4.0, [(30, "warning")]), (8.0, [(57, "warning")]), (16.0, [])])
def test_an_entropy_that_falls_to_nothing_beside_a_good_reward_is_a_warning(half, expected):
    rows = np.arange(100)
    columns = {"entropy_mean": noisy(2.0 * 0.5 ** (rows / half), 0.05), "reward_mean": 0.2 + 0.7 * rows / 100.0}
    assert found([EntropyCollapse()], columns, 10) == expected


def test_no_gain_in_thirty_rows_of_twenty_steps():
    reward = 0.3 + np.random.default_rng(3).normal(0.0, 0.05, 45)
    assert found([Plateau()], {"reward_mean": reward}, 20) == [(31, "warning")]
    assert found([Plateau()], {"reward_mean": reward}, 512) == []  # steps that count samples: forty updates are few


def test_a_rule_that_waits_for_thirty_rows_waits_for_eight_of_ten_steps():
    grad = {"grad_norm": np.where(np.arange(100) < 50, 1.0, 1e-6), "reward_mean": [0.3] * 100}
    (dense,), (sparse,) = (found([VanishingGradient()], grad, every) for every in (1, 10))
    assert dense[0] - sparse[0] == 30 - 8


@pytest.mark.parametrize("every", [5, 10])
def test_an_explosion_of_the_gradient_is_critical_after_as_many_updates(every):
    """Half of the rows that it takes in a log of every update, or fewer: each stands for several."""
    norms = {"grad_norm": np.where(np.arange(100) < 50, 1.0, 400.0) + 0.01 * np.arange(100) % 0.1, "reward_mean": [0.3] * 100}
    dense, sparse = (dict(map(reversed, found([ExplodingGradient()], norms, one))) for one in (1, every))
    assert sparse["critical"] - 50 <= 0.5 * (dense["critical"] - 50)


def test_a_dead_reward_needs_half_the_rows():
    reward = {"reward_mean": [0.25] * 60}
    dense, sparse = (found([DeadReward()], reward, every) for every in (1, 10))
    assert dense == [(11, "warning"), (21, "critical")]
    assert [severity for _, severity in sparse] == ["warning", "critical"] and sparse[-1][0] <= 11


def test_rows_that_stand_for_so_many_steps():
    view = View(Event(0), 0, 0, SeriesByName())
    assert view.rows(30) == 30
    view.steps_per_row = 2.0
    assert (view.rows(30), view.rows(12), view.rows(5), view.rows(30, min_rows=20)) == (15, 8, 5, 20)


FLAT = [0.5, 0.53, 0.47, 0.52, 0.49, 0.51, 0.48, 0.53, 0.5, 0.47, 0.52, 0.5, 0.49, 0.51, 0.5]
MOVED = [0.02, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.5, 0.55, 0.55, 0.5, 0.55, 0.5, 0.55]


@pytest.mark.parametrize(
    ("every", "reward", "raised"),
    [
        (10, FLAT, True),
        (1, FLAT, False),  # fifteen updates are too few
        (10, [0.04 * row + value for row, value in enumerate(FLAT)], False),
        (10, [0.2, *FLAT[1:]], False),  # learnt in the first update
    ],
    ids=["flat", "flat_and_short", "rising", "learnt_at_once"],
)
def test_a_flat_reward_of_few_rows_that_stand_for_many_updates(every, reward, raised):
    assert bool(found([Plateau()], {"reward_mean": reward, "kl_mean": MOVED}, every)) == raised


@pytest.mark.parametrize(("every", "raised"), [(10, [(13, "warning")]), (1, [])])
def test_three_low_rows_are_a_fall_if_each_stands_for_many_updates(every, raised):
    fell = [0.44, 0.4, 0.52, 0.63, 0.68, 0.74, 0.79, 0.8, 0.83, 0.75, 0.69, 0.55, 0.54, 0.53]
    assert found([PolicyCollapse()], {"reward_mean": fell}, every) == raised
