"""A KL that has left for good, and all those that have not."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.kl.kl_explosion import KlExplosion

ROWS = 300
AT = np.arange(ROWS)


def kls(level: float = 0.05, noise: float = 0.3, time: float = 30.0, seed: int = 0) -> np.ndarray:
    """A healthy KL: up from nothing to its level, with multiplicative noise."""
    return level * (1.0 - np.exp(-AT / time)) * np.exp(np.random.default_rng(seed).normal(0.0, noise, ROWS))


def exploding(level: float = 0.05, factor: float = 40.0, seed: int = 0) -> np.ndarray:
    return kls(level, seed=seed) * np.where(AT < 150, 1.0, 1.0 + (factor - 1.0) * np.clip((AT - 150) / 40.0, 0.0, 1.0))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [1e-4, 0.01, 0.3])
def test_the_kl_of_a_healthy_run_is_silent(fires, level, seed):
    assert fires(KlExplosion(), {"kl_mean": kls(level, seed=seed)}) == []


@pytest.mark.parametrize("seed", range(5))
def test_by_response_six_from_the_first_row_is_silent(fires, seed):
    kl = np.random.default_rng(seed).normal(6.5, 2.5, ROWS)
    assert fires(KlExplosion(), {"kl_mean": kl}, "sequence") == []
    assert fires(KlExplosion(), {"kl_mean": kl}, "unstated") == []


def test_lone_outliers_are_silent(fires):
    kl = kls()
    kl[[80, 140, 141, 200]] = [0.93, 2.55, 3.0, 40.0]
    assert fires(KlExplosion(), {"kl_mean": kl}) == []


def test_a_reference_that_is_another_model_is_silent(fires):
    assert fires(KlExplosion(), {"kl_mean": 0.8 + 0.2 * kls(1.0)}) == []


def test_an_explosion_by_token_warns_then_is_critical(watch):
    columns = {"kl_mean": exploding(), "kl_coef": np.full(ROWS, 0.01), "lr": np.full(ROWS, 1e-5)}
    engine = watch(KlExplosion(), columns)
    assert [(anomaly.index, anomaly.severity) for anomaly in engine.anomalies] == [(166, "warning"), (174, "critical")]
    critical = engine.anomalies[-1]
    assert critical.tracker == "kl_schedule" and critical.since == 162 and critical.threshold == 0.5
    assert "nats a token" in critical.message
    assert critical.advice.startswith("Go back to the last good checkpoint, raise the KL coefficient (now 0.01)")
    assert "learning rate (now 1e-05)" in critical.advice


def test_an_explosion_from_the_first_rows_on(fires):
    kl = np.concatenate([[0.002, 0.02, 0.1], 3.0 * (1.0 - np.exp(-np.arange(97) / 20.0)) + 0.2])
    assert fires(KlExplosion(), {"kl_mean": kl}) == [(12, "warning"), (16, "critical")]


def test_it_clears(watch):
    kl = np.where((AT > 100) & (AT < 140), 0.8, 0.05)
    (anomaly,) = watch(KlExplosion(), {"kl_mean": kl}).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (107, "warning", 151)


def test_by_response_the_limit_is_fifty_or_a_tenth_of_the_length(fires):
    kl = exploding(level=6.0, factor=12.0)
    assert fires(KlExplosion(), {"kl_mean": kl}, "sequence") == [(187, "warning")]
    assert fires(KlExplosion(), {"kl_mean": kl, "rollout_length_mean": np.full(ROWS, 4000.0)}, "sequence") == []


def test_a_known_target_lowers_the_limit(fires):
    kl = exploding(level=6.0, factor=12.0)
    columns = {"kl_mean": kl, "kl_coef": np.full(ROWS, 0.1), "target_kl": np.full(ROWS, 6.0)}
    assert fires(KlExplosion(), columns, "sequence") == [(170, "warning"), (192, "critical")]
    assert fires(KlExplosion(), {"kl_mean": kl}, "unstated", kl_target=6.0) == [(170, "warning"), (192, "critical")]


def test_a_target_of_the_early_stop_is_not_one_of_the_reference(fires):
    columns = {"kl_mean": kls(6.0), "target_kl": np.full(ROWS, 0.02)}
    assert fires(KlExplosion(), columns, "sequence") == []


def test_a_large_kl_alone_is_a_warning_and_with_the_reward_gone_critical(fires):
    kl = np.where(AT < 100, 0.1, 0.7)
    assert fires(KlExplosion(), {"kl_mean": kl}) == [(106, "warning")]
    reward = np.where(AT < 150, 0.8, 0.2) + np.random.default_rng(1).normal(0.0, 0.02, ROWS)
    assert fires(KlExplosion(), {"kl_mean": kl, "reward_mean": reward}) == [(106, "warning"), (160, "critical")]


def test_a_dip_of_the_reward_that_recovers_leaves_it_a_warning(fires):
    kl = np.where(AT < 100, 0.1, 0.7)
    reward = np.where((AT > 150) & (AT < 159), 0.2, 0.8) + np.random.default_rng(1).normal(0.0, 0.02, ROWS)
    assert fires(KlExplosion(), {"kl_mean": kl, "reward_mean": reward}) == [(106, "warning")]


def test_without_a_unit_signs_of_damage_are_asked_for(fires):
    kl = np.where(AT < 100, 0.1, 0.9)
    spread = np.where(AT < 120, 0.4, 0.001)
    perplexity = np.where(AT < 140, 4.5, 12.0)
    assert fires(KlExplosion(), {"kl_mean": kl}, "unstated") == []
    assert fires(KlExplosion(), {"kl_mean": kl, "reward_std": spread}, "unstated") == [(126, "warning")]
    columns = {"kl_mean": kl, "reward_std": spread, "eval_perplexity": perplexity}
    assert fires(KlExplosion(), columns, "unstated") == [(126, "warning"), (149, "critical")]


def test_beyond_either_unit_no_sign_is_asked_for(fires):
    kl = np.where(AT < 100, 0.1, 200.0)
    assert fires(KlExplosion(), {"kl_mean": kl}, "unstated") == [(106, "critical")]


def test_a_usual_kl_is_judged_by_what_it_had_settled_at(fires):
    kl = exploding(level=0.01, factor=20.0)
    assert fires(KlExplosion(), {"kl_mean": kl}) == [(174, "warning")]
    grad = np.where(AT < 150, 1.0, 8.0)
    assert fires(KlExplosion(), {"kl_mean": kl, "grad_norm": grad}) == [(170, "warning")]


def test_a_run_that_begins_to_learn_late_has_not_settled(fires):
    kl = np.where(AT < 100, 0.0003, 0.0003 + 0.2 * np.clip((AT - 100) / 100.0, 0.0, 1.0))
    assert fires(KlExplosion(), {"kl_mean": kl}) == []


@pytest.mark.parametrize("row", [4, 100, 163, 170, 200])
def test_a_break_changes_nothing(watch, resumed, row):
    columns = {"kl_mean": exploding(), "grad_norm": np.where(AT < 150, 1.0, 8.0)}
    whole = [anomaly.to_dict() for anomaly in watch(KlExplosion(), columns).anomalies]
    assert [anomaly.to_dict() for anomaly in resumed(KlExplosion, columns, row).anomalies] == whole != []


def test_its_limits_can_be_set(fires):
    kl = np.where(AT < 100, 0.01, 0.15)
    assert fires(KlExplosion(token=0.1), {"kl_mean": kl}) == [(106, "warning")]


def test_a_kl_that_is_absurd_from_the_first_row_is_critical_by_token_only(where):
    kl = np.exp(np.random.default_rng(0).normal(4.0, 0.5, 60))
    assert where(KlExplosion(), {"kl_mean": kl}, {"kl_mean": "token"}) == [(8, "critical")]
    assert where(KlExplosion(), {"kl_mean": np.full(60, 20.0)}, {"kl_mean": "sequence"}) == []
    assert where(KlExplosion(), {"kl_mean": np.full(60, 5.0)}, {"kl_mean": "token"}) == []
