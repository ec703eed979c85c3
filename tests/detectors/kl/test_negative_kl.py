"""A KL below zero, by chance or for good."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.negative_kl import NegativeKl

ROWS = 300
AT = np.arange(ROWS)


def kls(mean: float, noise: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, noise, ROWS)


@pytest.mark.parametrize("seed", range(5))
def test_noise_around_zero_is_silent(fires, seed):
    assert fires(NegativeKl(), {"kl_mean": kls(0.0, 0.1, seed)}) == []
    assert fires(NegativeKl(), {"kl_mean": kls(-0.001, 0.002, seed)}) == []
    assert fires(NegativeKl(), {"kl_mean": kls(0.0, 2.0, seed)}, "sequence") == []


def test_single_negatives_are_silent(fires):
    kl = np.full(ROWS, 0.05)
    kl[::7] = -5.0
    assert fires(NegativeKl(), {"kl_mean": kl}) == []


def test_a_spell_that_ends_is_silent(fires):
    assert fires(NegativeKl(), {"kl_mean": np.where((AT > 100) & (AT < 108), -0.3, 0.05)}) == []


def test_a_kl_that_stays_below_zero(watch):
    kl = np.where((AT >= 100) & (AT < 200), -0.2, 0.05) + kls(0.0, 0.02)
    (anomaly,) = watch(NegativeKl(), {"kl_mean": kl}).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (109, "warning", 102, 221)
    assert anomaly.threshold == -0.05 and "temperature 1" in anomaly.advice


def test_a_sampler_that_lags_behind_is_told_before_its_weights_are_renewed(fires):
    """Responses of old weights become ever less likely; after twenty updates the sampler gets the new ones."""
    since = AT % 20
    kl = np.where(AT < 20, -0.005 * since**2, 1.0 - 0.05 * since)
    assert fires(NegativeKl(), {"kl_mean": kl}) == [(13, "warning"), (17, "critical")]


def test_far_below_zero_is_critical(fires):
    assert fires(NegativeKl(), {"kl_mean": kls(-0.8, 0.1)}) == [(8, "critical")]
    assert fires(NegativeKl(), {"kl_mean": kls(-14.0, 1.0)}, "sequence") == [(8, "critical")]


def test_each_unit_has_its_limit(fires):
    kl = kls(-0.7, 0.02)
    assert fires(NegativeKl(), {"kl_mean": kl}, "sequence") == []
    assert fires(NegativeKl(), {"kl_mean": kl}, "unstated") == [(11, "warning")]
    assert fires(NegativeKl(), {"kl_mean": kls(-0.2, 0.02)}, "unstated") == []
    assert fires(NegativeKl(), {"kl_mean": kls(-3.0, 0.5)}, "sequence") == [(11, "warning")]


@pytest.mark.parametrize("row", [60, 110, 130])
def test_a_break_changes_nothing(watch, resumed, row):
    kl = np.where(AT < 100, 0.05, -0.2)
    whole = [anomaly.to_dict() for anomaly in watch(NegativeKl(), {"kl_mean": kl}).anomalies]
    assert [anomaly.to_dict() for anomaly in resumed(NegativeKl, {"kl_mean": kl}, row).anomalies] == whole != []
