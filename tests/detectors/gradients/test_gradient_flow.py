"""Norms that leave the healthy range."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.gradients.gradient_flow_anomaly import GradientFlow


def norms(rows: int = 300, level: float = 1.0, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, rows))


@pytest.mark.parametrize("level", [0.006, 1.0, 50.0])
def test_the_runs_own_level_is_healthy_wherever_it_is(where, level):
    assert where(GradientFlow(), {"grad_norm": norms(level=level, sigma=0.5)}) == []


def test_a_baseline_outside_of_the_range_is_not_judged(where):
    values = norms(level=0.006)
    values[100:] *= 7.0
    assert where(GradientFlow(), {"grad_norm": values}) == []


def test_well_above_the_range(judge):
    values = norms(level=6.0, sigma=0.1)
    values[100:200] *= 7.5
    (anomaly,) = judge(GradientFlow(), {"grad_norm": values})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (131, "warning", 206)


def test_well_below_the_range(where):
    values = norms(sigma=0.1)
    values[100:] *= 0.02
    assert where(GradientFlow(), {"grad_norm": values}) == [(131, "warning")]
    assert where(GradientFlow(), {"grad_norm": values, "reward_zero_std_frac": np.full(300, 0.8)}) == []


@pytest.mark.parametrize("factor", [100.0, 1e-4])
def test_explosion_and_vanishing_are_left_to_their_own(where, factor):
    values = norms(sigma=0.1)
    values[100:] *= factor
    assert where(GradientFlow(), {"grad_norm": values}) == []
