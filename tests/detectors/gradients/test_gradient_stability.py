"""Spikes that have become a habit."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.gradients.gradient_stability_anomaly import GradientStability


def norms(rows: int = 400, level: float = 3.0, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, rows))


@pytest.mark.parametrize("seed", range(5))
def test_spikes_now_and_then_are_silent(where, seed):
    spiking = np.random.default_rng(seed + 10).random(400) < 0.03
    assert where(GradientStability(), {"grad_norm": norms(seed=seed) * np.where(spiking, 50.0, 1.0)}) == []


def test_a_wide_relative_spread_of_small_norms_is_silent(where):
    values = norms(level=0.3) * np.random.default_rng(1).choice([0.0, 0.001, 1.0, 8.0], 400)
    assert where(GradientStability(), {"grad_norm": values}) == []


def test_a_spike_every_third_row(judge):
    values = norms()
    values[100:250:3] *= 30.0
    (anomaly,) = judge(GradientStability(), {"grad_norm": values})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (131, "warning", 124, 280)


def test_an_explosion_is_left_to_its_own(where):
    values = norms()
    values[100:] *= 100.0
    assert where(GradientStability(), {"grad_norm": values}) == []


def test_spikes_are_a_note_while_the_reward_thrives_and_nothing_is_damaged(told):
    values, at = norms(), np.arange(400)
    values[100:250:3] *= 30.0
    rises = np.clip(at / 80.0, 0.0, 1.0) + 0.02 * np.random.default_rng(2).normal(size=400)
    found = told(GradientStability(), {"grad_norm": values, "reward_mean": rises})
    assert [(severity, clause) for _, severity, clause in found] == [("note", "spikes")]
    harmed = {"grad_norm": values, "reward_mean": rises, "entropy_mean": np.where(at < 110, 1.0, 0.001)}
    assert [severity for _, severity, _ in told(GradientStability(), harmed)] == ["warning"]


def test_what_follows_a_changed_reward_is_no_habit(where):
    """The value function learns the new level: for a while its gradients are large."""
    values, at = norms(200), np.arange(200)
    values[100:140:2] *= 30.0
    offset = {"reward_mean": 0.5 + 0.05 * np.random.default_rng(3).normal(size=200) - np.where(at < 100, 0.0, 5.0)}
    steady = {"kl_mean": np.full(200, 0.1), "entropy_mean": np.full(200, 1.0)}
    assert where(GradientStability(), {"grad_norm": values, **offset, **steady}) == []
