"""The course of the KL: its trend, its swings, and the range it should keep to."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.kl_trend_anomaly import KlTrendAnomaly
from rldk.detectors.kl.kl_volatility_anomaly import KlVolatilityAnomaly
from rldk.detectors.kl.target_range_anomaly import TargetRangeAnomaly

ROWS = 400
AT = np.arange(ROWS)


def noise(sigma: float = 0.1, seed: int = 0) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


# kl_trend_anomaly


@pytest.mark.parametrize("seed", range(5))
def test_a_rise_that_levels_off_is_silent(fires, seed):
    assert fires(KlTrendAnomaly(), {"kl_mean": 0.45 * (1.0 - np.exp(-AT / 60.0)) * noise(0.3, seed)}) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_rise_within_the_usual_is_silent(fires, seed):
    assert fires(KlTrendAnomaly(), {"kl_mean": 0.0007 * AT * noise(0.1, seed)}) == []
    assert fires(KlTrendAnomaly(), {"kl_mean": 0.03 * AT * noise(0.1, seed)}, "sequence") == []


@pytest.mark.parametrize("seed", range(5))
def test_noise_without_a_rise_is_silent(fires, seed):
    assert fires(KlTrendAnomaly(), {"kl_mean": 0.4 * noise(0.6, seed)}) == []


def test_a_rise_that_gathers_pace(watch):
    kl = 0.08 * np.exp(np.minimum(AT, 220) / 60.0) * noise(0.05)
    columns = {"kl_mean": kl, "kl_coef": np.full(ROWS, 0.001)}
    (anomaly,) = watch(KlTrendAnomaly(), columns).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (157, "warning", 273)
    assert "90 rows" in anomaly.message and "(now 0.001)" in anomaly.advice


def test_by_response(fires):
    kl = 2.0 * np.exp(np.minimum(AT, 250) / 60.0)
    assert fires(KlTrendAnomaly(), {"kl_mean": kl}, "sequence") == [(154, "warning")]
    assert fires(KlTrendAnomaly(), {"kl_mean": np.minimum(kl, 24.0)}, "sequence") == []


def test_without_a_unit_a_rise_needs_a_sign_of_damage(fires):
    kl = 0.08 * np.exp(np.minimum(AT, 220) / 60.0)
    assert fires(KlTrendAnomaly(), {"kl_mean": kl}, "unstated") == []
    columns = {"kl_mean": kl, "eval_perplexity": np.where(AT < 180, 4.0, 9.0)}
    assert fires(KlTrendAnomaly(), columns, "unstated") == [(180, "warning")]


# kl_volatility_anomaly


@pytest.mark.parametrize("seed", range(5))
def test_a_kl_that_swings_by_its_own_size_is_silent_while_small(fires, seed):
    assert fires(KlVolatilityAnomaly(), {"kl_mean": 0.1 * noise(0.8, seed)}) == []
    assert fires(KlVolatilityAnomaly(), {"kl_mean": 6.0 * noise(0.5, seed)}, "sequence") == []
    assert fires(KlVolatilityAnomaly(), {"kl_mean": 2.0 * noise(0.8, seed)}, "unstated") == []


def test_a_spike_is_no_swing(fires):
    kl = 0.1 * noise()
    kl[[100, 250]] = 5.0
    assert fires(KlVolatilityAnomaly(), {"kl_mean": kl}) == []


def test_a_large_kl_that_keeps_still_does_not_swing(fires):
    assert fires(KlVolatilityAnomaly(), {"kl_mean": np.where(AT < 100, 0.1, 5.0) * noise()}) == []


def test_swings_from_row_to_row(watch):
    kl = np.where((AT >= 150) & (AT < 250), np.where(AT % 2, 1.5, 0.1), 0.1)
    (anomaly,) = watch(KlVolatilityAnomaly(), {"kl_mean": kl}).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (187, "warning", 284)
    assert "batch size" in anomaly.advice


# target_range_anomaly


def test_without_a_target_it_says_nothing(fires):
    assert fires(TargetRangeAnomaly(), {"kl_mean": np.full(ROWS, 9.0)}) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_kl_around_its_target_is_silent(fires, seed):
    kl = 0.1 * (1.0 - np.exp(-AT / 10.0)) * noise(0.3, seed)
    assert fires(TargetRangeAnomaly(), {"kl_mean": kl}, kl_target=0.1, kl_target_tolerance=0.05) == []


def test_above_and_below_the_range_that_the_user_gave(watch):
    kl = np.select([AT < 100, AT < 160, AT < 260], [0.1, 0.2, 0.1], 0.01)
    columns = {"kl_mean": kl, "kl_coef": np.full(ROWS, 0.2)}
    above, below = watch(TargetRangeAnomaly(), columns, kl_target=0.1, kl_target_tolerance=0.05).anomalies
    assert (above.index, above.severity, above.threshold, above.cleared_index) == (121, "warning", pytest.approx(0.15), 171)
    assert (below.index, below.threshold, below.cleared_index) == (281, pytest.approx(0.05), None)
    assert above.advice.startswith("Raise the KL coefficient (now 0.2)") and below.advice == "Lower the KL coefficient (now 0.2)."


def test_the_way_up_from_zero_is_not_below(fires):
    kl = np.minimum(0.1, 0.002 * AT)
    assert fires(TargetRangeAnomaly(), {"kl_mean": kl}, kl_target=0.1, kl_target_tolerance=0.05) == []


def test_a_logged_target_has_a_ceiling_only(fires):
    columns = {"kl_mean": np.where(AT < 200, 1.0, 19.0), "kl_coef": np.full(ROWS, 0.1), "target_kl": np.full(ROWS, 6.0)}
    assert fires(TargetRangeAnomaly(), columns, "sequence") == [(221, "warning")]
    assert fires(TargetRangeAnomaly(), {**columns, "kl_mean": np.where(AT < 200, 1.0, 17.0)}, "sequence") == []
    del columns["kl_coef"]
    assert fires(TargetRangeAnomaly(), columns, "sequence") == []


def test_a_controller_on_its_way_is_a_note_while_the_reward_thrives(watch, fires):
    target = {"kl_target": 0.1, "kl_target_tolerance": 0.05}
    learns = {"kl_mean": np.full(ROWS, 0.3), "reward_mean": 1.0 - np.exp(-AT / 60.0) + noise(0.02) - 1.0}
    rises = {**learns, "kl_coef": 0.1 * 1.001**AT}
    assert fires(TargetRangeAnomaly(), rises, **target) == []
    assert [note.clause for note in watch(TargetRangeAnomaly(), rises, **target).notes] == ["above"]
    assert fires(TargetRangeAnomaly(), {**learns, "kl_coef": np.full(ROWS, 0.1)}, **target) == [(49, "warning")]
    assert fires(TargetRangeAnomaly(), {**rises, "reward_mean": noise()}, **target) == [(49, "warning")]
    assert fires(TargetRangeAnomaly(), {**rises, "eos_frac": np.where(AT < 10, 1.0, 0.0)}, **target) == [(49, "warning")]


@pytest.mark.parametrize("kind", [KlTrendAnomaly, KlVolatilityAnomaly, TargetRangeAnomaly])
@pytest.mark.parametrize("row", [70, 165, 178])
def test_a_break_changes_nothing(watch, resumed, kind, row):
    kl = 0.02 * np.exp(np.minimum(AT, 150) / 40.0) * np.where((AT > 160) & (AT % 2 == 0), 4.0, 1.0)
    context = {"kl_target": 0.1, "kl_target_tolerance": 0.05}
    whole = [anomaly.to_dict() for anomaly in watch(kind(), {"kl_mean": kl}, **context).anomalies]
    assert [anomaly.to_dict() for anomaly in resumed(kind, {"kl_mean": kl}, row, **context).anomalies] == whole != []
