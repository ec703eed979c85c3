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


def raised_at(clause: str) -> int:
    """The row at which a clause is raised that holds from row 102 on, when a median of five has moved."""
    return 101 + EntropyExplosion.clauses[clause].persist


RISING = 0.2 + AT / 300.0 + noise(0.01, 2)


@pytest.mark.parametrize(("before", "after"), [(0.02, 0.2), (0.5, 1.0), (2.0, 2.8), (6.0, 7.0)])
def test_exploring_is_silent(told, before, after):
    assert told(EntropyExplosion(), {"entropy_mean": from_row_100(before, after)}) == []


@pytest.mark.parametrize(("before", "after"), [(0.1, 1.0), (0.5, 1.4), (1.0, 1.7)])
def test_a_rise_of_half_is_a_warning_unless_the_reward_improves(told, before, after):
    columns = {"entropy_mean": from_row_100(before, after)}
    assert told(EntropyExplosion(), columns) == [(raised_at("rising"), "warning", "rising")]
    assert told(EntropyExplosion(), {**columns, "reward_mean": RISING}) == []
    assert told(EntropyExplosion(), {"entropy_mean": from_row_100(before, after, until=107)}) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_entropy_is_silent(where, seed):
    assert where(EntropyExplosion(), {"entropy_mean": 0.5 * np.exp(noise(0.5, seed))}) == []


def test_lone_spikes_are_silent(where):
    assert where(EntropyExplosion(), {"entropy_mean": np.where(AT % 20 < 2, 9.0, 0.5)}) == []


def test_a_nat_and_twice_its_start_is_critical(judge):
    (anomaly,) = judge(EntropyExplosion(), {"entropy_mean": from_row_100(0.5, 8.0, until=150)})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (102, "critical", "exploded")  # no text: no wait
    assert (anomaly.since, anomaly.cleared_index) == (102, 156)
    assert anomaly.message.startswith("Entropy rose from 0.")


def test_a_reward_near_its_best_makes_it_a_warning_while_it_is_still_text(told):
    columns = {"entropy_mean": from_row_100(1.0, 2.5)}
    assert told(EntropyExplosion(), columns) == [(raised_at("exploded"), "critical", "exploded")]
    assert told(EntropyExplosion(), {**columns, "reward_mean": RISING}) == [(raised_at("exploded"), "warning", "exploded")]
    noise_now = {"entropy_mean": from_row_100(1.0, 5.0), "reward_mean": RISING}
    assert told(EntropyExplosion(), noise_now) == [(102, "critical", "exploded")]


VOCABULARY = {"vocab_size": np.full(ROWS, 32000.0)}  # words drawn at random have 10.4 nats


@pytest.mark.parametrize("level", [10.0, 8.0])
def test_a_model_that_draws_words_at_random_from_the_first_row(told, level):
    columns = {"entropy_mean": np.full(ROWS, level), **VOCABULARY}
    assert told(EntropyExplosion(), columns) == [(4, "note", "untrained"), (31, "warning", "random_from_start")]
    assert told(EntropyExplosion(), {**columns, "reward_mean": RISING})[0] == (4, "note", "untrained")
    assert told(EntropyExplosion(), {"entropy_mean": np.full(ROWS, level)}) == []


def test_a_model_that_comes_to_draw_words_at_random_is_critical_after_three_rows(told):
    found = told(EntropyExplosion(), {"entropy_mean": np.where(AT < 100, 7.0, 10.0), **VOCABULARY})
    assert found == [(104, "critical", "random")]
    assert told(EntropyExplosion(), {"entropy_mean": np.full(ROWS, 7.0), **VOCABULARY}) == []


def test_the_limits_can_be_set(told):
    columns = {"entropy_mean": from_row_100(1.0, 2.5), "reward_mean": RISING}
    assert told(EntropyExplosion(factor=20.0), columns) == []
    assert told(EntropyExplosion(rise=3.0), columns) == []


@pytest.mark.parametrize(("entropy", "last"), [(5.3, (31, "warning", "random_from_start")), (4.5, (4, "note", "untrained"))])
def test_a_rising_reward_does_not_excuse_random_tokens(told, entropy, last):
    columns = {"entropy_mean": np.full(100, entropy), "vocab_size": np.full(100, 223.0), "reward_mean": 0.01 * np.arange(100)}
    assert told(EntropyExplosion(), columns)[-1] == last
