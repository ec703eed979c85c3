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


@pytest.mark.parametrize(("before", "after"), [(0.02, 0.2), (0.1, 1.0), (0.5, 1.4), (1.0, 3.5), (2.0, 5.0), (6.0, 7.0)])
def test_exploring_is_silent(where, before, after):
    assert where(EntropyExplosion(), {"entropy_mean": from_row_100(before, after)}) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_noisy_entropy_is_silent(where, seed):
    assert where(EntropyExplosion(), {"entropy_mean": 0.5 * np.exp(noise(0.5, seed))}) == []


def test_lone_spikes_are_silent(where):
    assert where(EntropyExplosion(), {"entropy_mean": np.where(AT % 20 < 2, 9.0, 0.5)}) == []


def test_noise_is_critical_at_once(judge):
    (anomaly,) = judge(EntropyExplosion(), {"entropy_mean": from_row_100(0.5, 8.0, until=150)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (104, "critical", 102, 156)
    assert "times its start" in anomaly.message


def test_within_what_text_has_it_is_a_warning(where):
    assert where(EntropyExplosion(), {"entropy_mean": from_row_100(0.3, 2.5)}) == [(104, "warning")]


def test_and_critical_while_the_reward_falls(where):
    reward = np.where(AT < 130, 0.8, 0.1)
    found = where(EntropyExplosion(), {"entropy_mean": from_row_100(0.3, 2.5), "reward_mean": reward})
    assert found == [(104, "warning"), (132, "critical")]


def test_the_limits_can_be_set(where):
    columns = {"entropy_mean": from_row_100(0.3, 2.5)}
    assert where(EntropyExplosion(factor=20.0), columns) == []
    assert where(EntropyExplosion(rise=3.0), columns) == []
    assert where(EntropyExplosion(text_limit=2.0), columns) == [(104, "critical")]
