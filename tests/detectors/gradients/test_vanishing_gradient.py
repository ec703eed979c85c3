"""Gradients that die while there is something to learn."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.gradients.vanishing_gradient_anomaly import VanishingGradient


def norms(rows: int = 300, level: float = 1.0, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, rows))


@pytest.mark.parametrize("level", [1e-4, 0.006, 1.0])
def test_small_gradients_throughout_are_silent(where, level):
    assert where(VanishingGradient(), {"grad_norm": norms(level=level, sigma=0.7)}) == []


@pytest.mark.parametrize("share", [0.3, 0.5, 0.6])
def test_zeros_in_many_of_the_rows_are_silent(where, share):
    alive = np.random.default_rng(1).random(1000) > share
    assert where(VanishingGradient(), {"grad_norm": norms(1000) * alive}) == []


def test_gradients_that_die_warn_and_clear(judge):
    values = norms()
    values[100:200] *= 1e-3
    (anomaly,) = judge(VanishingGradient(), {"policy_grad_norm": values, "entropy_mean": np.full(300, 0.01)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (129, "warning", 100, 202)
    assert "entropy is 0.01 now" in anomaly.advice


def test_without_signal_there_is_no_gradient_to_miss(where):
    values, spread = norms(), np.full(300, 0.4)
    values[100:] = 0.0
    assert where(VanishingGradient(), {"grad_norm": values, "reward_std": spread}) == [(129, "warning")]
    spread[95:] = 0.0
    assert where(VanishingGradient(), {"grad_norm": values, "reward_std": spread}) == []
    alike = np.where(np.arange(300) < 95, 0.1, 0.9)
    assert where(VanishingGradient(), {"grad_norm": values, "reward_zero_std_frac": alike}) == []


def test_frozen_from_the_first_row(where):
    still = {"grad_norm": np.zeros(100), "kl_mean": np.zeros(100), "reward_std": np.full(100, 0.3)}
    assert where(VanishingGradient(), still) == [(48, "warning")]
    assert where(VanishingGradient(), {**still, "kl_mean": np.linspace(0.0, 0.01, 100)}) == []
    assert where(VanishingGradient(), {"grad_norm": np.zeros(100)}) == []
