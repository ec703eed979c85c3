"""The chance behind simulated runs, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.testing.streams.batch import rank_correlation
from rldk.testing.streams.noise import Noise, autoregress, follow


def test_a_name_is_a_stream_of_its_own() -> None:
    first, again = Noise(3, 50), Noise(3, 50)
    first.normal("another")
    assert (first.normal("kl") == again.normal("kl")).all()
    assert not (first.normal("kl") == first.normal("entropy")).any()
    assert not (first.normal("kl") == Noise(4, 50).normal("kl")).any()


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_memory_of_the_noise(rho: float) -> None:
    series = Noise(1, 40_000).series("x", rho, tail=5.0)
    assert np.corrcoef(series[:-1], series[1:])[0, 1] == pytest.approx(rho, abs=0.03)
    assert series.std() == pytest.approx(1.0, abs=0.05)


def test_tails_are_heavier_with_fewer_degrees_of_freedom() -> None:
    heavy, light = (Noise(1, 40_000).series("x", tail=tail) for tail in (3.5, 30.0))
    assert (np.abs(heavy) > 4).mean() > 10 * (np.abs(light) > 4).mean()


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30), st.floats(0, 0.99))
def test_autoregression_against_a_loop(shocks: list[float], rho: float) -> None:
    expected, level = [], shocks[0]
    for position, shock in enumerate(shocks):
        level = shock if position == 0 else rho * level + math.sqrt(1 - rho * rho) * shock
        expected.append(level)
    assert autoregress(np.array(shocks), rho).tolist() == pytest.approx(expected)


def test_following_against_a_loop() -> None:
    goal, level, expected = [1.0, 2.0, -1.0], 0.5, []
    for wanted in goal:
        level += 0.1 * (wanted - level)
        expected.append(level)
    assert follow(np.array(goal), 0.1, 0.5).tolist() == pytest.approx(expected)


def test_spikes_stand_alone_and_within_their_bounds() -> None:
    factors = Noise(2, 20_000).spikes("x", 0.01, 3.0, 20.0)
    assert ((factors == 1.0) | ((factors >= 3.0) & (factors <= 20.0))).all()
    assert (factors > 1.0).mean() == pytest.approx(0.01, abs=0.003)


def test_positive_noise_has_mean_near_one_and_is_bounded() -> None:
    factor = Noise(2, 20_000).factor("x", 0.4, 0.5, 3.5)
    assert (factor > 0).all() and factor.max() < 25.0
    assert factor.mean() == pytest.approx(1.0, abs=0.1)


def test_bumps_pass() -> None:
    bumps = Noise(5, 1000).bumps("x", 2, (10, 20), (0.5, 1.0))
    assert 0.4 < bumps.max() <= 2.0
    assert (bumps > 0.05).mean() < 0.2
    assert not Noise(5, 1000).bumps("x", 0, (10, 20), (0.5, 1.0)).any()


def _average_ranks(values: list[float]) -> list[float]:
    return [sum(other < value for other in values) + 0.5 * (values.count(value) - 1) for value in values]


@given(st.lists(st.tuples(st.integers(1, 10**6), st.booleans()), min_size=3, max_size=20, unique_by=lambda pair: pair[0]))
def test_rank_correlation_with_rewards_of_two_values(pairs: list[tuple[int, bool]]) -> None:
    lengths, rewards = [float(length) for length, _ in pairs], [float(right) for _, right in pairs]
    found = rank_correlation(np.array([lengths]), np.array([rewards]), tied=True)[0]
    if len(set(rewards)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(np.corrcoef(_average_ranks(lengths), _average_ranks(rewards))[0, 1])
