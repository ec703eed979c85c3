"""Updates that are too large, from the start or since the learning rate jumped."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.run.learning_rate_too_high import LearningRateTooHigh

ROWS = 300
AT = np.arange(ROWS)


def around(level: float, sigma: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


@pytest.mark.parametrize("seed", range(4))
def test_usual_updates_are_silent(where, seed):
    usual = {
        "kl_update": around(0.01, 0.7, seed),
        "clip_frac": around(0.15, 0.3, seed),
        "kl_mean": around(4.0),
        "lr": around(1e-5, 0.0),
    }
    assert where(LearningRateTooHigh(), usual) == []


def test_one_update_a_batch_is_silent(where):
    assert where(LearningRateTooHigh(), {"kl_update": np.zeros(ROWS), "clip_frac": np.zeros(ROWS)}) == []


def test_lone_large_updates_are_silent(where):
    update = around(0.01)
    update[[2, 9, 100]] = 0.5
    assert where(LearningRateTooHigh(), {"kl_update": update}) == []


def test_large_updates_later_are_anothers(where):
    assert where(LearningRateTooHigh(), {"kl_update": np.where(AT < 50, 0.01, 0.5)}) == []


@pytest.mark.parametrize("peak", [1e-6, 1e-4])
def test_warm_up_is_silent(where, peak):
    lr = peak * np.minimum((AT + 1) / 30.0, 1.0) * np.clip(1.0 - AT / ROWS, 0.0, 1.0)
    assert where(LearningRateTooHigh(), {"lr": lr, "truncated_frac": np.ones(ROWS)}) == []


def test_too_large_from_the_start(judge):
    (anomaly,) = judge(LearningRateTooHigh(), {"kl_update": np.where(AT < 120, 0.2, 0.01), "lr": np.full(ROWS, 5e-4)})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (2, "warning", 131)
    assert "0.0005 now" in anomaly.advice


def test_a_run_that_ends_calm_is_critical_before_it_does(where):
    entropy = np.maximum(0.8 * np.exp(-AT / 6.0), 1e-3)
    calm = {"kl_update": 0.3 * np.exp(-AT / 10.0), "clip_frac": 0.4 * np.exp(-AT / 10.0), "entropy_mean": entropy}
    assert where(LearningRateTooHigh(), calm) == [(2, "warning"), (18, "critical")]


def test_a_kl_that_is_far_off_at_once(where):
    kl = np.minimum(AT * 0.2, 3.0)
    assert where(LearningRateTooHigh(), {"kl_mean": kl}, {"kl_mean": "token"}) == [(8, "warning")]
    assert where(LearningRateTooHigh(), {"kl_mean": kl}, {"kl_mean": "sequence"}) == []
    assert where(LearningRateTooHigh(), {"kl_mean": kl + 2.0}, {"kl_mean": "token"}) == []


def test_a_jump_without_damage_is_silent(where):
    jump = {"lr": np.where(AT < 100, 1e-6, 2e-5), "kl_update": around(0.01), "truncated_frac": np.ones(ROWS)}
    assert where(LearningRateTooHigh(), jump) == []


def test_a_jump_with_damage(judge):
    jump = {
        "lr": np.where(AT < 100, 1e-6, 2e-5),
        "kl_update": np.where(AT < 103, 0.01, 0.4),
        "reward_mean": np.where(AT < 110, 0.9, 0.1) + around(0.01),
    }
    warning, critical = judge(LearningRateTooHigh(), jump)
    assert (warning.index, warning.severity) == (105, "warning")
    assert (critical.index, critical.severity) == (112, "critical")
    assert "jumped to 2e-05" in critical.message


def test_a_restart_of_the_schedule_is_silent(where):
    lr = 1e-5 * (0.5 + 0.5 * np.cos(np.pi * (AT % 100) / 100.0))
    assert where(LearningRateTooHigh(), {"lr": lr, "kl_update": np.where(AT < 20, 0.01, 0.05)}) == []
