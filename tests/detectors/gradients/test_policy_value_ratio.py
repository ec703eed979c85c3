"""Three ways in which the gradients of policy and value function come apart, and how they are told from each other."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.gradients.gradient_balance_anomaly import GradientBalance
from rldk.detectors.gradients.gradient_imbalance_anomaly import GradientImbalance
from rldk.detectors.gradients.ratio_trend_anomaly import RatioTrend

KINDS = (GradientImbalance, GradientBalance, RatioTrend)
ROWS = 500


def norms(level: float = 1.0, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


def told(where, policy: np.ndarray, value: np.ndarray) -> dict[str, list[tuple[int, str]]]:
    found = {kind.type: where(kind(), {"policy_grad_norm": policy, "value_grad_norm": value}) for kind in KINDS}
    return {name: rows for name, rows in found.items() if rows}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.001, 1.0, 500.0])
def test_any_ratio_that_stays_is_silent(where, level, seed):
    assert told(where, norms(level, 0.6, seed), norms(1.0, 0.6, seed + 50)) == {}


def test_a_value_function_that_settles_is_silent(where):
    settling = 1.0 + 30.0 * np.exp(-np.arange(ROWS) / 20.0)
    assert told(where, norms(), norms(seed=1) * settling) == {}


def test_orders_of_magnitude_are_an_imbalance_only(where):
    step = np.where(np.arange(ROWS) < 200, 1.0, 1000.0)
    assert told(where, norms(), norms(seed=1) * step) == {"gradient_imbalance_anomaly": [(211, "warning")]}
    assert told(where, norms() * step, norms(seed=1)) == {"gradient_imbalance_anomaly": [(211, "warning")]}


def test_a_jump_within_bounds_is_a_loss_of_balance_only(where):
    step = np.where(np.arange(ROWS) < 200, 1.0, 25.0)
    assert told(where, norms(), norms(seed=1) * step) == {"gradient_balance_anomaly": [(221, "warning")]}


def test_a_steady_drift_is_a_trend_only(where):
    drift = np.exp(np.clip(np.arange(ROWS) - 150, 0, 150) * np.log(12.0) / 100.0)
    assert told(where, norms(sigma=0.1), norms(sigma=0.1, seed=1) * drift) == {"ratio_trend_anomaly": [(274, "warning")]}


def test_a_ratio_large_from_the_start_must_move_to_be_an_imbalance(where):
    step = np.where(np.arange(ROWS) < 200, 1.0, 4.0)
    assert told(where, norms(200.0), norms(seed=1) / step) == {}


def test_they_clear_when_the_ratio_comes_back(judge):
    step = np.where((np.arange(ROWS) < 200) | (np.arange(ROWS) >= 300), 1.0, 1000.0)
    (anomaly,) = judge(GradientImbalance(), {"policy_grad_norm": norms(), "value_grad_norm": norms(seed=1) * step})
    assert (anomaly.index, anomaly.cleared_index) == (211, 306)
    assert "value function dominates" in anomaly.message


@pytest.mark.parametrize("kind", KINDS)
def test_zeros_on_one_side_are_silent(where, kind):
    assert where(kind(), {"policy_grad_norm": norms(), "value_grad_norm": np.zeros(ROWS)}) == []


@pytest.mark.parametrize("kind", KINDS)
def test_one_side_alone_is_not_judged(inactive, kind):
    assert inactive(kind(), {"policy_grad_norm": norms()}) == [(kind.type, ["value_grad_norm"])]
