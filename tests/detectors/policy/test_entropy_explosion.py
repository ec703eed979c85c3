"""An entropy that leaves what text has."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.entropy_explosion import EntropyExplosion

ROWS = 200
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def from_row_100(before: float, after: float, until: int = ROWS) -> np.ndarray:
    return np.where(np.isin(AT, np.arange(100, until)), after, before) * np.exp(noise(0.05))


RISING = 0.2 + AT / 300.0 + noise(0.01, 2)


@pytest.mark.parametrize(("before", "after"), [(0.02, 0.2), (0.5, 1.0), (2.0, 2.8), (6.0, 7.0)])
def test_exploring_is_silent(told, before, after):
    assert told(EntropyExplosion(), {"entropy_mean": from_row_100(before, after)}) == []


@pytest.mark.parametrize(("before", "after"), [(0.1, 1.0), (0.5, 1.4), (1.0, 1.7)])
def test_a_rise_of_half_is_a_warning_unless_the_reward_improves(told, before, after):
    columns = {"entropy_mean": from_row_100(before, after)}
    assert told(EntropyExplosion(), columns) == [(111, "warning", "rising")]
    assert told(EntropyExplosion(), {**columns, "reward_mean": RISING}) == []
    assert told(EntropyExplosion(), {"entropy_mean": from_row_100(before, after, until=107)}) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_entropy_is_silent(where, seed):
    assert where(EntropyExplosion(), {"entropy_mean": 0.5 * np.exp(noise(0.5, seed))}) == []


def test_lone_spikes_are_silent(where):
    assert where(EntropyExplosion(), {"entropy_mean": np.where(AT % 20 < 2, 9.0, 0.5)}) == []


def test_a_nat_and_twice_its_start_is_critical_after_four_rows(judge):
    (anomaly,) = judge(EntropyExplosion(), {"entropy_mean": from_row_100(0.5, 8.0, until=150)})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (105, "critical", "exploded")
    assert (anomaly.since, anomaly.cleared_index) == (102, 156)
    assert anomaly.message.startswith("Entropy rose from 0.")


def test_a_reward_near_its_best_makes_it_a_warning_while_it_is_still_text(told):
    columns = {"entropy_mean": from_row_100(1.0, 2.5)}
    assert told(EntropyExplosion(), columns) == [(105, "critical", "exploded")]
    assert told(EntropyExplosion(), {**columns, "reward_mean": RISING}) == [(105, "warning", "exploded")]
    noise_now = {"entropy_mean": from_row_100(1.0, 5.0), "reward_mean": RISING}
    assert told(EntropyExplosion(), noise_now) == [(105, "critical", "exploded")]


@pytest.mark.parametrize(
    ("level", "found"),
    [(10.0, [(4, "critical", "random")]), (9.0, [(6, "warning", "near_random")]), (7.5, [])],
)
def test_words_drawn_at_random_from_the_first_row(told, level, found):
    columns = {"entropy_mean": np.full(50, level), "vocab_size": np.full(50, 32000.0)}
    assert told(EntropyExplosion(), columns) == found
    assert told(EntropyExplosion(), {"entropy_mean": np.full(50, level)}) == []


def test_the_limits_can_be_set(told):
    columns = {"entropy_mean": from_row_100(1.0, 2.5), "reward_mean": RISING}
    assert told(EntropyExplosion(factor=20.0), columns) == []
    assert told(EntropyExplosion(rise=3.0), columns) == []
