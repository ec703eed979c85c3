"""The controller of the KL coefficient: deaf, stuck, too eager, swinging, or simply not there."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.coef_adaptation_anomaly import CoefAdaptationAnomaly
from rldk.detectors.kl.controller_oscillation_anomaly import ControllerOscillationAnomaly
from rldk.detectors.kl.controller_overshoot_anomaly import ControllerOvershootAnomaly
from rldk.detectors.kl.controller_responsiveness_anomaly import ControllerResponsivenessAnomaly

KINDS = [CoefAdaptationAnomaly, ControllerOscillationAnomaly, ControllerOvershootAnomaly, ControllerResponsivenessAnomaly]
ROWS = 400
AT = np.arange(ROWS)
TARGET = 6.0


def controlled(seed: int = 0, rate: float = 0.03, coef: float = 0.1) -> dict[str, np.ndarray]:
    """A loop as Ziegler et al. close it: the KL follows the coefficient, and the coefficient the KL's error."""
    rng = np.random.default_rng(seed)
    true, kls, coefs = 0.0, [], []
    for _ in range(ROWS):
        true += 0.6 * np.exp(rng.normal(0.0, 0.3)) - coef * true
        kl = true * np.exp(rng.normal(0.0, 0.15))
        kls.append(kl)
        coefs.append(coef)
        coef *= 1.0 + np.clip(kl / TARGET - 1.0, -0.2, 0.2) * rate
    return columns(kls, coefs)


def columns(kl, coef) -> dict[str, np.ndarray]:
    return {"kl_mean": np.asarray(kl), "kl_coef": np.asarray(coef), "target_kl": np.full(ROWS, TARGET)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
@pytest.mark.parametrize("seed", range(10))
def test_a_controller_that_works_is_silent(fires, kind, seed):
    assert fires(kind(), controlled(seed), "sequence") == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_a_fixed_coefficient_is_a_choice(fires, kind):
    kl = np.where(AT < 100, 1.0, 30.0 + 20.0 * np.sin(AT / 20.0))
    assert fires(kind(), columns(kl, np.full(ROWS, 0.05)), "sequence") == []


@pytest.mark.parametrize("kind", [CoefAdaptationAnomaly, ControllerOvershootAnomaly, ControllerResponsivenessAnomaly])
def test_without_a_target_it_says_nothing(fires, kind):
    stuck = columns(np.where(AT < 100, 6.0, 30.0), np.where(AT < 100, 0.1 + 0.001 * AT, 0.2))
    del stuck["target_kl"]
    assert fires(kind(), stuck, "sequence") == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_without_a_coefficient_it_is_inactive(watch, kind):
    engine = watch(kind(), {"kl_mean": np.full(50, 20.0)}, "sequence")
    assert engine.anomalies == [] and engine.inactive() == [(kind.type, ["kl_coef"])]


# coef_adaptation_anomaly


def test_a_coefficient_that_stops_while_the_kl_is_far_off(watch):
    coef = np.where(AT < 100, 0.1 + 0.001 * AT, np.where(AT < 250, 0.2, 0.2 + 0.001 * (AT - 250)))
    (anomaly,) = watch(CoefAdaptationAnomaly(), columns(np.where(AT < 120, 6.0, 12.0), coef), "sequence").anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (151, "warning", 253)
    assert "the highest it has been" in anomaly.message and anomaly.advice.startswith("Raise the KL coefficient (now 0.2)")


def test_a_coefficient_that_rests_near_the_target_is_silent(fires):
    coef = np.where(AT < 100, 0.1 + 0.001 * AT, 0.2)
    assert fires(CoefAdaptationAnomaly(), columns(np.full(ROWS, 8.0), coef), "sequence") == []


def test_stuck_below_the_target(watch):
    coef = np.where(AT < 100, 0.2 - 0.001 * AT, 0.1)
    (anomaly,) = watch(CoefAdaptationAnomaly(), columns(np.where(AT < 120, 6.0, 1.0), coef), "sequence").anomalies
    assert anomaly.index == 151 and anomaly.advice.startswith("Lower the KL coefficient (now 0.1)")


# controller_responsiveness_anomaly


def test_a_coefficient_that_goes_the_wrong_way(watch):
    coef = np.where(AT < 100, 0.1, 0.1 * 0.995 ** (AT - 100))
    (anomaly,) = watch(ControllerResponsivenessAnomaly(), columns(np.where(AT < 100, 6.0, 15.0), coef), "sequence").anomalies
    assert (anomaly.index, anomaly.severity) == (124, "warning")
    assert "sign" in anomaly.advice


def test_a_coefficient_that_rises_while_the_kl_is_low(fires):
    coef = np.where(AT < 100, 0.1, 0.1 * 1.005 ** (AT - 100))
    assert fires(ControllerResponsivenessAnomaly(), columns(np.where(AT < 100, 6.0, 1.0), coef), "sequence") == [(124, "warning")]


def test_a_coefficient_that_hardly_moves(watch):
    coef = 0.1 * 1.0001**AT
    kl = np.where((AT < 100) | (AT > 250), 6.0, 15.0)
    (anomaly,) = watch(ControllerResponsivenessAnomaly(), columns(kl, coef), "sequence").anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (154, "warning", 262)
    assert anomaly.advice.startswith("Shorten the controller's horizon")


def test_a_coefficient_that_answers_is_silent(fires):
    coef = np.where(AT < 100, 0.1, 0.1 * 1.003 ** (AT - 100))
    assert fires(ControllerResponsivenessAnomaly(), columns(np.where(AT < 100, 6.0, 15.0), coef), "sequence") == []


# controller_overshoot_anomaly


def test_from_above_the_target_to_far_below(watch):
    kl = np.select([AT < 100, AT < 130, AT < 150, AT < 200], [6.0, 15.0, 6.0, 1.0], 6.0)
    coef = 0.1 * np.select([AT < 100, AT < 150], [1.0, 1.01 ** (AT - 100)], 1.7)
    (anomaly,) = watch(ControllerOvershootAnomaly(), columns(kl, coef), "sequence").anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (156, "warning", 211)
    assert "horizon" in anomaly.advice


def test_from_the_start_to_far_above(fires):
    kl = np.select([AT < 30, AT < 50], [1.0, 5.0], 14.0)
    coef = np.select([AT < 50], [0.2 * 0.98**AT], 0.2 * 0.98**50)
    assert fires(ControllerOvershootAnomaly(), columns(kl, coef), "sequence") == [(56, "warning")]


def test_a_first_rise_that_goes_a_little_too_far_is_silent(fires):
    kl = np.select([AT < 30, AT < 50, AT < 80], [1.0, 5.0, 10.0], 6.0)
    coef = np.select([AT < 50], [0.2 * 0.98**AT], 0.2 * 0.98**50)
    assert fires(ControllerOvershootAnomaly(), columns(kl, coef), "sequence") == []


def test_a_kl_that_crosses_by_itself_is_no_overshoot(fires):
    kl = np.select([AT < 100, AT < 130, AT < 150], [6.0, 15.0, 6.0], 1.0)
    assert fires(ControllerOvershootAnomaly(), columns(kl, 0.1 * 1.0005**AT), "sequence") == []


# controller_oscillation_anomaly


def test_a_coefficient_that_swings_with_the_kl(watch):
    phase = np.where(AT < 100, 0.0, AT - 100) * 2.0 * np.pi / 60.0
    swinging = columns(6.0 * np.exp(0.8 * np.sin(phase)), 0.1 * np.exp(0.5 * (1.0 - np.cos(phase))))
    (anomaly,) = watch(ControllerOscillationAnomaly(), swinging, "sequence").anomalies
    assert (anomaly.index, anomaly.severity) == (233, "warning")
    assert "turned 4 times" in anomaly.message and "horizon" in anomaly.advice


def test_it_needs_no_target(fires):
    phase = AT * 2.0 * np.pi / 60.0
    swinging = columns(6.0 * np.exp(0.8 * np.sin(phase)), 0.1 * np.exp(0.5 * (1.0 - np.cos(phase))))
    del swinging["target_kl"]
    assert fires(ControllerOscillationAnomaly(), swinging, "sequence") == [(133, "warning")]


def test_a_schedule_set_by_hand_is_no_oscillation(fires):
    coef = 0.1 * np.exp(0.5 * (1.0 - np.cos(AT * 2.0 * np.pi / 60.0)))
    assert fires(ControllerOscillationAnomaly(), columns(np.full(ROWS, 6.0), coef), "sequence") == []


def test_two_turns_are_no_oscillation(fires):
    phase = np.minimum(AT, 90) * 2.0 * np.pi / 60.0
    swinging = columns(6.0 * np.exp(0.8 * np.sin(phase)), 0.1 * np.exp(0.5 * (1.0 - np.cos(phase))))
    assert fires(ControllerOscillationAnomaly(), swinging, "sequence") == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
@pytest.mark.parametrize("row", [3, 120, 135, 160])
def test_a_break_changes_nothing(watch, resumed, kind, row):
    if kind is ControllerOscillationAnomaly:
        phase = AT * 2.0 * np.pi / 60.0
        stream = columns(6.0 * np.exp(0.8 * np.sin(phase)), 0.1 * np.exp(0.5 * (1.0 - np.cos(phase))))
    elif kind is ControllerOvershootAnomaly:
        kl = np.select([AT < 100, AT < 130, AT < 150, AT < 200], [6.0, 15.0, 6.0, 1.0], 6.0)
        stream = columns(kl, 0.1 * np.select([AT < 100, AT < 150], [1.0, 1.01 ** (AT - 100)], 1.7))
    else:
        drop = 0.995 if kind is ControllerResponsivenessAnomaly else 1.0
        stream = columns(np.where(AT < 100, 6.0, 15.0), np.where(AT < 100, 0.1 + 0.001 * AT, 0.2 * drop ** (AT - 100)))
    whole = [anomaly.to_dict() for anomaly in watch(kind(), stream, "sequence").anomalies]
    assert [anomaly.to_dict() for anomaly in resumed(kind, stream, row, "sequence").anomalies] == whole != []
