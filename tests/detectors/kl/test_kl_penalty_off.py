"""A penalty that pays, that was lost, and one that is off by choice."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.kl_penalty_off import KlPenaltyOff
from rldk.judge.incidents.incident import group_incidents

ROWS = 300
AT = np.arange(ROWS)
OFF = np.zeros(ROWS)


@pytest.mark.parametrize("unit", ["token", "sequence", "unstated"])
def test_a_penalty_lost_at_once_is_told_with_the_second_row(watch, unit):
    (anomaly,) = watch(KlPenaltyOff(), {"kl_coef": np.where(AT < 100, 0.05, 0.0)}, unit).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.clause, anomaly.since) == (101, "warning", "lost", 100)
    assert "0.05" in anomaly.message and "back to 0.05" in anomaly.advice and anomaly.evidence["coef_before"] == 0.05


def test_a_penalty_that_comes_back_clears_it(watch):
    (anomaly,) = watch(KlPenaltyOff(), {"kl_coef": np.where((AT < 100) | (AT >= 150), 0.05, 0.0)}).anomalies
    assert anomaly.cleared_index == 152


def test_one_row_without_it_is_no_loss(told):
    assert told(KlPenaltyOff(), {"kl_coef": np.where(AT == 100, 0.0, 0.05)}) == []


@pytest.mark.parametrize(
    ("coef", "noted"),
    [(np.clip(0.05 * (1 - AT / 100), 0.0, 1.0), 100), (np.where(AT < 4, 0.05, 0.0), 4), (0.05 * 0.9**AT, 59)],
    ids=["faded out", "never held", "an adaptive one that sinks"],
)
def test_a_penalty_that_ends_by_degrees_is_a_note(told, coef, noted):
    assert told(KlPenaltyOff(), {"kl_coef": coef}) == [(noted, "note", "chosen")]


@pytest.mark.parametrize("coef", [OFF, np.full(ROWS, 1e-6), np.where(AT < 100, 0.0, 0.05)], ids=["0", "tiny", "begun late"])
def test_no_penalty_from_the_start_is_a_note_once_whatever_the_kl_does(told, coef):
    assert told(KlPenaltyOff(), {"kl_coef": coef}) == [(0, "note", "chosen")]
    assert told(KlPenaltyOff(), {"kl_coef": coef, "kl_mean": 0.9 * AT / ROWS}) == [(0, "note", "chosen")]


def test_a_small_penalty_is_one(told):
    assert told(KlPenaltyOff(), {"kl_coef": np.full(ROWS, 1e-3), "kl_mean": 0.9 * AT / ROWS}) == []


@pytest.mark.parametrize(("coef", "index"), [(np.full(ROWS, -0.2), 0), (np.where(AT < 100, 0.05, -0.2), 100)])
def test_a_negative_coefficient_is_critical_at_once(watch, coef, index):
    (anomaly,) = watch(KlPenaltyOff(), {"kl_coef": coef}).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (index, "critical", "negative")
    assert "positive" in anomaly.advice and "raise" not in anomaly.advice.lower()


def test_a_penalty_that_pays_is_critical_after_five_rows(told):
    kl = np.full(ROWS, 2.0)
    assert told(KlPenaltyOff(), {"kl_mean": kl, "kl_penalty_reward": 0.05 * kl}) == [(4, "critical", "pays")]
    assert told(KlPenaltyOff(), {"kl_mean": kl, "kl_penalty_reward": -0.05 * kl}) == []
    four = np.where(AT < 4, 0.05, -0.05) * kl
    assert told(KlPenaltyOff(), {"kl_mean": kl, "kl_penalty_reward": four}) == []


def test_a_kl_too_small_to_tell_the_coefficient_is_silent(told):
    assert told(KlPenaltyOff(), {"kl_mean": np.full(ROWS, 0.2), "kl_penalty_reward": np.full(ROWS, 0.01)}) == []


def test_a_loss_shows_in_the_penalty_too_where_no_coefficient_is_logged(told):
    penalty = np.where(AT < 100, -0.1, 0.0)
    assert told(KlPenaltyOff(), {"kl_mean": np.full(ROWS, 2.0), "kl_penalty_reward": penalty}) == [(101, "warning", "lost")]


def test_the_state_survives_a_break(watch, resumed):
    stream = {"kl_coef": np.where(AT < 100, 0.05, 0.0)}
    whole = [one.to_dict() for one in watch(KlPenaltyOff(), stream).anomalies]
    assert whole and all([one.to_dict() for one in resumed(KlPenaltyOff, stream, row).anomalies] == whole for row in (50, 101))


def test_the_incident_says_that_the_penalty_is_too_weak(watch):
    engine = watch(KlPenaltyOff(), {"kl_coef": np.where(AT < 100, 0.05, 0.0)})
    (incident,) = group_incidents(engine.anomalies, ROWS)
    assert incident.cause == "kl_penalty_too_weak" and incident.severity == "warning"
