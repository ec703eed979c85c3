"""A penalty that is off is a choice until it shows."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.kl_penalty_off import KlPenaltyOff
from rldk.judge.incidents.incident import group_incidents

ROWS = 300
AT = np.arange(ROWS)
OFF, HELD = np.zeros(ROWS), np.full(ROWS, 0.05)


def columns(kl=None, coef=OFF, **others) -> dict[str, np.ndarray]:
    found = {"kl_coef": np.asarray(coef), **others}
    return found if kl is None else {"kl_mean": np.asarray(kl), **found}


def climbing(height: float, seed: int = 0) -> np.ndarray:
    return height * AT / ROWS * np.exp(np.random.default_rng(seed).normal(0.0, 0.1, ROWS))


@pytest.mark.parametrize("unit", ["token", "sequence", "unstated"])
def test_a_penalty_lost_at_once_is_told_after_three_rows(watch, unit):
    (anomaly,) = watch(KlPenaltyOff(), columns(coef=np.where(AT < 100, 0.05, 0.0)), unit).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.since) == (102, "warning", 100)
    assert "0.05" in anomaly.message and "back to 0.05" in anomaly.advice and anomaly.evidence["coef_before"] == 0.05


def test_a_penalty_that_comes_back_clears_it(watch):
    (anomaly,) = watch(KlPenaltyOff(), columns(coef=np.where((AT < 100) | (AT >= 150), 0.05, 0.0))).anomalies
    assert anomaly.cleared_index == 154


@pytest.mark.parametrize(
    "coef",
    [np.clip(0.05 * (1 - AT / 100), 0.0, 1.0), np.where(AT < 4, 0.05, 0.0), np.where(AT < 100, 0.0, 0.05), 0.05 * 0.9**AT, OFF],
    ids=["faded out", "never held", "begun late", "an adaptive one that sinks", "a choice"],
)
def test_no_penalty_is_no_loss_of_one(fires, coef):
    assert fires(KlPenaltyOff(), columns(coef=coef)) == []


def test_two_rows_without_it_are_no_loss(fires):
    assert fires(KlPenaltyOff(), columns(coef=np.where((AT == 100) | (AT == 101), 0.0, 0.05))) == []


@pytest.mark.parametrize(("coef", "index"), [(OFF, 100), (np.full(ROWS, 1e-6), 100), (HELD, None), (np.full(ROWS, 1e-3), None)])
def test_a_policy_that_leaves_is_told_only_if_nothing_holds_it(fires, coef, index):
    steady = 0.9 * AT / ROWS  # 0.3 at row 100: the middle of five is above it two rows later, and three checks are waited for
    found = fires(KlPenaltyOff(), columns(steady, coef), "token")
    assert found == ([] if index is None else [(index + 5, "warning")])


@pytest.mark.parametrize(("unit", "height"), [("token", 0.25), ("sequence", 12.0), ("unstated", 12.0)])
@pytest.mark.parametrize("seed", range(5))
def test_a_usual_kl_is_left_alone(fires, unit, height, seed):
    assert fires(KlPenaltyOff(), columns(climbing(height, seed)), unit) == []


def test_a_kl_at_rest_is_left_alone(fires):
    resting = np.where(AT < 60, AT / 60.0, 0.45)  # higher while the penalty was on, which is then faded out
    assert fires(KlPenaltyOff(), columns(resting, np.clip(0.05 * (1 - AT / 150), 0.0, 1.0)), "token") == []


def test_far_from_the_reference_since_the_start_is_no_drift(fires):
    assert fires(KlPenaltyOff(), columns(0.4 + climbing(0.4)), "token") == []


@pytest.mark.parametrize(("length", "at"), [(12.0, 6.0), (50.0, 15.0), (400.0, 40.0)])
def test_the_limit_by_response_goes_with_its_length(watch, length, at):
    stream = columns(np.minimum(AT * 0.2, 50.0), rollout_length_mean=np.full(ROWS, length))
    (anomaly,) = watch(KlPenaltyOff(), stream, "sequence").anomalies
    assert anomaly.threshold == at


def test_a_reward_that_thrives_buys_twice_the_way(watch):
    reward = np.minimum(0.1 + 0.005 * AT, 0.9)
    (alone,) = watch(KlPenaltyOff(), columns(0.9 * AT / ROWS)).anomalies
    (thriving,) = watch(KlPenaltyOff(), columns(0.9 * AT / ROWS, reward_mean=reward)).anomalies
    assert (alone.threshold, thriving.threshold) == (0.3, 0.6) and thriving.index > alone.index


def test_it_stands_while_the_kl_stays_high_and_is_said_once(watch):
    kl = np.where(AT < 100, 0.008 * AT, 0.6)
    (anomaly,) = watch(KlPenaltyOff(), columns(kl), "token").anomalies
    assert anomaly.cleared_index is None


def test_the_state_survives_a_break(watch, resumed):
    for stream in (columns(coef=np.where(AT < 100, 0.05, 0.0)), columns(climbing(0.9))):
        whole = [one.to_dict() for one in watch(KlPenaltyOff(), stream).anomalies]
        assert whole and all(
            [one.to_dict() for one in resumed(KlPenaltyOff, stream, row).anomalies] == whole for row in (50, 101)
        )


def test_the_incident_says_that_the_penalty_is_too_weak(watch):
    engine = watch(KlPenaltyOff(), columns(coef=np.where(AT < 100, 0.05, 0.0)))
    (incident,) = group_incidents(engine.anomalies, ROWS)
    assert incident.cause == "kl_penalty_too_weak" and incident.severity == "warning"
