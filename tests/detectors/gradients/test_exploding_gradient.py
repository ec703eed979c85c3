"""Gradients that grow far beyond the run's own normal."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.gradients.exploding_gradient_anomaly import ExplodingGradient


def norms(rows: int = 300, level: float = 1.0, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, rows))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.006, 0.5, 9.0])
def test_ordinary_norms_are_silent(where, level, seed):
    assert where(ExplodingGradient(), {"grad_norm": norms(level=level, sigma=0.7, seed=seed)}) == []


def test_lone_spikes_are_silent(where):
    values = norms()
    values[[50, 120, 121, 250]] *= [100.0, 30.0, 60.0, 1000.0]
    assert where(ExplodingGradient(), {"grad_norm": values}) == []


def test_zeros_in_half_of_the_rows_are_silent(where):
    values = norms(level=0.5) * np.random.default_rng(1).integers(0, 2, 300)
    assert where(ExplodingGradient(), {"grad_norm": values}) == []


def test_growth_from_nothing_to_the_healthy_range_is_silent(where):
    values = norms(level=0.005)
    values[30:] *= 60.0
    assert where(ExplodingGradient(), {"grad_norm": values}) == []


def test_a_lasting_explosion_warns_and_clears(judge):
    values = norms()
    values[100:130] *= 40.0
    (anomaly,) = judge(ExplodingGradient(), {"grad_norm": values, "lr": np.full(300, 3e-5)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (106, "warning", 102, 136)
    assert anomaly.family == "gradient_norms"
    assert "times the run's own normal" in anomaly.message and "3e-05 now" in anomaly.advice


def test_with_the_reward_fallen_it_is_critical(where):
    values, reward = norms(), 0.8 + 0.02 * norms(seed=3)
    values[100:] *= 40.0
    reward[105:] = 0.1
    assert where(ExplodingGradient(), {"grad_norm": values, "reward_mean": reward}) == [(106, "warning"), (111, "critical")]


def test_a_hundredfold_that_lasts_is_critical_by_itself(where):
    values = norms()
    values[100:] *= 1000.0
    assert where(ExplodingGradient(), {"grad_norm": values}) == [(106, "warning"), (121, "critical")]


def test_below_ten_it_takes_another_sign_of_damage(where):
    values, entropy = norms(level=0.1), np.full(300, 0.5)
    values[100:] *= 40.0
    assert where(ExplodingGradient(), {"grad_norm": values}) == []
    entropy[90:] = 3.0
    assert where(ExplodingGradient(), {"grad_norm": values, "entropy_mean": entropy}) == [(106, "warning")]


def test_the_value_function_is_watched_too(where):
    values = norms()
    values[100:] *= 40.0
    assert where(ExplodingGradient(), {"policy_grad_norm": norms(), "value_grad_norm": values}) == [(106, "warning")]


def test_what_is_not_finite_is_left_to_another(where):
    values = norms()
    values[100:103] *= 1000.0
    values[103:] = np.nan
    assert where(ExplodingGradient(), {"grad_norm": values}) == []


@pytest.mark.parametrize(("single", "found"), [(3e10, "critical"), (2e6, "warning"), (9e5, None)])
def test_a_single_norm_beyond_any_sane_one_is_enough(where, single, found):
    values = norms()
    values[50] = single
    assert where(ExplodingGradient(), {"grad_norm": values}) == ([(50, found)] if found else [])


def test_a_loss_that_is_a_sum_over_tokens_is_silent(where):
    assert where(ExplodingGradient(), {"grad_norm": norms(level=2e6)}) == []
