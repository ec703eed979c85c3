"""A KL that jumps: to stay, or again and again."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.kl_spike import KlSpike

ROWS = 400
AT = np.arange(ROWS)


def kls(level: float = 0.05, noise: float = 0.3, seed: int = 0) -> np.ndarray:
    return level * (1.0 - np.exp(-AT / 30.0)) * np.exp(np.random.default_rng(seed).normal(0.0, noise, ROWS))


@pytest.mark.parametrize("seed", range(5))
def test_the_kl_of_a_healthy_run_is_silent(fires, seed):
    assert fires(KlSpike(), {"kl_mean": kls(0.1, 0.6, seed)}) == []
    assert fires(KlSpike(), {"kl_mean": kls(6.0, 0.3, seed)}, "sequence") == []


def test_lone_spikes_are_silent_even_with_the_gradient(fires):
    kl, grad = kls(), np.ones(ROWS)
    kl[[120, 200, 290]] = [0.93, 2.5, 5.0]
    grad[[120, 200, 290]] = 40.0
    assert fires(KlSpike(), {"kl_mean": kl, "grad_norm": grad}) == []


def test_noise_around_zero_is_silent(fires):
    kl = np.random.default_rng(3).standard_t(2, ROWS) * 0.03
    assert fires(KlSpike(), {"kl_mean": kl}) == []


def test_the_fourth_spike_within_fifty_rows_is_a_note(told):
    kl = kls()
    kl[[150, 160, 170, 185]] = [2.0, 1.5, 3.0, 2.5]
    assert told(KlSpike(), {"kl_mean": kl}) == [(185, "note", "outliers")]
    kl[185] = 0.05
    assert told(KlSpike(), {"kl_mean": kl}) == []


def test_and_a_warning_where_another_channel_is_damaged(watch):
    kl = kls()
    kl[[150, 160, 170, 185]] = [2.0, 1.5, 3.0, 2.5]
    engine = watch(KlSpike(), {"kl_mean": kl, "eval_perplexity": np.where(AT < 140, 4.5, 12.0)})
    (anomaly,) = engine.anomalies
    assert (anomaly.index, anomaly.severity, anomaly.clause, anomaly.cleared_index) == (185, "warning", "spikes", 195)
    assert "several such jumps in 36 rows" in anomaly.message and engine.notes == []


def test_spikes_with_the_gradient_count_twice(told):
    kl, grad = kls(), np.ones(ROWS)
    kl[[150, 160]] = 2.0
    grad[[150, 160]] = 30.0
    assert told(KlSpike(), {"kl_mean": kl, "grad_norm": grad}) == [(160, "warning", "spikes")]


def test_one_beyond_all_measure_is_a_note_and_with_the_gradient_a_warning(told):
    kl, grad = kls(), np.ones(ROWS)
    kl[150], grad[150] = 40.0, 30.0
    assert told(KlSpike(), {"kl_mean": kl}) == [(150, "note", "outliers")]
    assert told(KlSpike(), {"kl_mean": kl, "grad_norm": grad}) == [(150, "warning", "spikes")]
    kl = kls(6.0, 0.2)
    kl[150] = 400.0
    assert told(KlSpike(), {"kl_mean": kl}, "sequence") == []
    kl[150] = 600.0
    assert told(KlSpike(), {"kl_mean": kl}, "sequence") == [(150, "note", "outliers")]


def test_a_leap_that_stays(watch):
    kl = kls() * np.where((AT >= 200) & (AT < 240), 10.0, 1.0)
    (anomaly,) = watch(KlSpike(), {"kl_mean": kl}).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (206, "warning", 249)
    assert "jumped" in anomaly.message and "gradients" in anomaly.advice


def test_three_high_rows_are_no_leap(fires):
    kl = kls() * np.where((AT >= 200) & (AT < 203), 10.0, 1.0)
    assert fires(KlSpike(), {"kl_mean": kl}) == []


def test_the_first_rise_is_no_leap(fires):
    kl = np.where(AT < 60, 0.0005, 0.2)
    assert fires(KlSpike(), {"kl_mean": kl}) == []


@pytest.mark.parametrize("row", [50, 155, 203, 207])
def test_a_break_changes_nothing(watch, resumed, row):
    kl = kls() * np.where(AT >= 200, 10.0, 1.0)
    kl[[150, 152, 157, 160]] = 2.0
    whole = [anomaly.to_dict() for anomaly in watch(KlSpike(), {"kl_mean": kl}).anomalies]
    assert [anomaly.to_dict() for anomaly in resumed(KlSpike, {"kl_mean": kl}, row).anomalies] == whole != []
