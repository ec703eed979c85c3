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


def raised_at(clause: str, since: int = 102) -> int:
    """The row at which a clause is raised that holds since a row: two after the change, when a median of five has moved."""
    return since - 1 + KlExplosion.clauses[clause].persist


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
    columns = {"kl_mean": exploding(factor=100.0), "kl_coef": np.full(ROWS, 0.01), "lr": np.full(ROWS, 1e-5)}
    engine = watch(KlExplosion(), columns)
    found = [(anomaly.index, anomaly.severity, anomaly.clause) for anomaly in engine.anomalies]
    settled = (raised_at("above_settled", 157), "warning", "above_settled")
    assert found == [settled, (raised_at("beyond_any", 170), "critical", "beyond_any")]
    critical = engine.anomalies[-1]
    assert critical.family == "kl_schedule" and critical.since == 157 and critical.threshold == pytest.approx(3.0)
    assert "nats per token" in critical.message
    assert critical.advice.startswith("Go back to the last good checkpoint, raise the KL coefficient (now 0.01)")
    assert "learning rate (now 1e-05)" in critical.advice


def test_an_explosion_from_the_first_rows_on(told):
    kl = np.concatenate([[0.002, 0.02, 0.1], 4.0 * (1.0 - np.exp(-np.arange(97) / 20.0)) + 0.2])
    assert told(KlExplosion(), {"kl_mean": kl}) == [(raised_at("beyond_any", 30), "critical", "beyond_any")]


def test_it_clears(watch):
    kl = np.where((AT > 100) & (AT < 140), 4.0, 0.05)
    (anomaly,) = watch(KlExplosion(), {"kl_mean": kl}).anomalies
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (raised_at("beyond_any", 103), "critical", 149)


@pytest.mark.parametrize(
    ("level", "found"),
    [(2.9, [(raised_at("far"), "warning", "far")]), (3.1, [(raised_at("beyond_any"), "critical", "beyond_any")])],
)
def test_beyond_any_healthy_run_it_is_critical_after_some_rows(told, level, found):
    assert told(KlExplosion(), {"kl_mean": np.where(AT < 100, 0.1, level)}) == found


def test_a_thriving_reward_makes_up_to_twice_the_limit_a_warning_while_no_other_channel_is_damaged(told):
    rising = {"reward_mean": 0.2 + AT / 400.0}
    columns = {"kl_mean": np.where(AT < 100, 0.1, 4.0), **rising}
    at = raised_at("beyond_any")
    assert told(KlExplosion(), columns) == [(at, "warning", "beyond_any")]
    ((_, severity, _),) = told(KlExplosion(), {**columns, "eos_frac": np.where(AT < 95, 0.9, 0.0)})
    assert severity == "critical"
    assert (at, "critical", "beyond_any") in told(KlExplosion(), {"kl_mean": np.where(AT < 100, 0.1, 7.0), **rising})


def test_far_out_is_a_warning_where_it_lasts_twenty_five_rows(told):
    assert told(KlExplosion(), {"kl_mean": np.where(AT < 100, 0.1, 1.6)}) == [(126, "warning", "far")]
    assert told(KlExplosion(), {"kl_mean": np.where((AT < 100) | (AT >= 124), 0.1, 1.6)}) == []
    assert told(KlExplosion(), {"kl_mean": np.where(AT < 40, 0.1, 1.4)}) == []


def falling(lowest: float, start: int = 150) -> np.ndarray:
    """A reward of 0.8 that falls within ten rows."""
    gone = np.clip((AT - start) / 10.0, 0.0, 1.0)
    return 0.8 - (0.8 - lowest) * gone + np.random.default_rng(1).normal(0.0, 0.02, ROWS)


def test_far_out_with_a_fallen_reward_it_is_critical(told):
    columns = {"kl_mean": np.where(AT < 100, 0.1, 1.6), "reward_mean": falling(0.2)}
    warning, (index, *critical) = told(KlExplosion(), columns)
    assert warning == (126, "warning", "far") and critical == ["critical", "with_damage"]
    assert 154 <= index <= 163, "exactly where is for the tests of the reward to say"


def test_a_usual_kl_with_a_fallen_reward_is_not_its_defect(told):
    assert told(KlExplosion(), {"kl_mean": np.where(AT < 40, 0.1, 1.4), "reward_mean": falling(0.2)}) == []


def test_a_dip_of_the_reward_that_recovers_leaves_it_a_warning(told):
    dip = np.where((AT > 150) & (AT < 154), 0.2, 0.8) + np.random.default_rng(1).normal(0.0, 0.02, ROWS)
    assert told(KlExplosion(), {"kl_mean": np.where(AT < 100, 0.1, 1.6), "reward_mean": dip}) == [(126, "warning", "far")]


def test_by_response_the_limit_is_fifty_or_goes_with_the_length(told):
    kl = exploding(level=6.0, factor=12.0)
    settled = (raised_at("above_settled", 174), "warning", "above_settled")
    assert told(KlExplosion(), {"kl_mean": kl}, "sequence") == [settled, (raised_at("beyond_any", 183), "critical", "beyond_any")]
    assert told(KlExplosion(), {"kl_mean": kl, "rollout_length_mean": np.full(ROWS, 4000.0)}, "sequence") == []
    short = {"kl_mean": kl, "rollout_length_mean": np.full(ROWS, 20.0)}
    assert told(KlExplosion(), short, "sequence")[-1][1:] == ("critical", "beyond_any")


def test_the_unit_does_not_change_the_verdict(told):
    per_token = exploding(factor=100.0)
    length = {"rollout_length_mean": np.full(ROWS, 80.0)}
    by_token = told(KlExplosion(), {"kl_mean": per_token, **length})
    assert told(KlExplosion(), {"kl_mean": 80.0 * per_token, **length}, "sequence") == by_token != []


def test_five_times_a_known_target_is_a_warning(told):
    kl = exploding(level=6.0, factor=12.0)
    expected = [(175, "warning", "beyond_target"), (raised_at("beyond_any", 183), "critical", "beyond_any")]
    columns = {"kl_mean": kl, "kl_coef": np.full(ROWS, 0.1), "target_kl": np.full(ROWS, 6.0)}
    assert told(KlExplosion(), columns, "sequence") == expected
    assert told(KlExplosion(), {"kl_mean": kl}, "unstated", kl_target=6.0) == expected
    near = {"kl_mean": np.where(AT < 100, 6.0, 24.0), "rollout_length_mean": np.full(ROWS, 400.0)}
    assert told(KlExplosion(), near, "sequence", kl_target=6.0) == []


def test_ten_times_a_known_target_is_critical_where_it_lasts_twenty_rows(told):
    length = {"rollout_length_mean": np.full(ROWS, 400.0)}
    beyond = (111, "warning", "beyond_target")
    far = told(KlExplosion(), {"kl_mean": np.where(AT < 100, 6.0, 66.0), **length}, "sequence", kl_target=6.0)
    assert far == [beyond, (121, "critical", "lost_target")]
    near = told(KlExplosion(), {"kl_mean": np.where(AT < 100, 6.0, 54.0), **length}, "sequence", kl_target=6.0)
    assert near == [beyond]


def test_a_target_of_the_early_stop_is_not_one_of_the_reference(fires):
    columns = {"kl_mean": kls(6.0), "target_kl": np.full(ROWS, 0.02)}
    assert fires(KlExplosion(), columns, "sequence") == []


@pytest.mark.parametrize(
    ("level", "found"),
    [
        (4.0, []),
        (6.0, [(66, "warning", "far")]),
        (12.0, [(raised_at("beyond_any", 42), "critical", "beyond_any")]),
        (60.0, [(42, "critical", "beyond_any")]),
    ],
)
def test_without_a_unit_the_limit_is_ten(told, level, found):
    assert told(KlExplosion(), {"kl_mean": np.where(AT < 40, 0.1, level)}, "unstated") == found


def test_without_a_unit_damage_counts_beyond_ten_only(told):
    perplexity = {"eval_perplexity": np.where(AT < 80, 4.5, 12.0)}
    columns = {"kl_mean": np.where(AT < 40, 0.1, 6.0), **perplexity}
    assert told(KlExplosion(), columns, "unstated") == [(66, "warning", "far")]
    assert told(KlExplosion(), columns, "token")[-1][1:] == ("critical", "beyond_any")


def test_a_usual_kl_is_judged_by_what_it_had_settled_at(told):
    assert told(KlExplosion(), {"kl_mean": exploding(level=0.01, factor=20.0)}) == [(179, "warning", "above_settled")]
    assert told(KlExplosion(), {"kl_mean": exploding(level=0.05, factor=6.0)}) == []


def test_what_it_has_risen_from_does_not_move_along(watch):
    kl = exploding(level=0.01, factor=20.0)
    (anomaly,) = watch(KlExplosion(), {"kl_mean": np.concatenate([kl, np.full(300, kl[-1])])}).anomalies
    assert anomaly.cleared_index is None
    back = np.concatenate([kl, np.full(100, kl[-1]), np.full(60, 0.01)])
    (anomaly,) = watch(KlExplosion(), {"kl_mean": back}).anomalies
    assert anomaly.cleared_index is not None and anomaly.cleared_index > len(kl) + 100


def test_a_run_that_begins_to_learn_late_has_not_settled(told):
    kl = np.where(AT < 100, 0.0003, 0.0003 + 0.2 * np.clip((AT - 100) / 100.0, 0.0, 1.0))
    assert told(KlExplosion(), {"kl_mean": kl}) == []


@pytest.mark.parametrize("row", [4, 100, 163, 170, 200])
def test_a_break_changes_nothing(watch, resumed, row):
    columns = {"kl_mean": exploding(), "grad_norm": np.where(AT < 150, 1.0, 8.0)}
    whole = [anomaly.to_dict() for anomaly in watch(KlExplosion(), columns).anomalies]
    assert [anomaly.to_dict() for anomaly in resumed(KlExplosion, columns, row).anomalies] == whole != []


def test_its_limits_can_be_set(told):
    kl = np.where(AT < 40, 0.01, 0.2)
    assert told(KlExplosion(limit=0.05), {"kl_mean": kl}) == [(raised_at("beyond_any", 42), "critical", "beyond_any")]
    assert told(KlExplosion(), {"kl_mean": kl}) == []


def test_sick_from_the_first_row_is_sick(told):
    assert told(KlExplosion(), {"kl_mean": np.full(60, 60.0)}) == [(2, "critical", "beyond_any")]
    assert told(KlExplosion(), {"kl_mean": np.full(60, 60.0)}, "unstated") == [(2, "critical", "beyond_any")]
    assert told(KlExplosion(), {"kl_mean": np.full(60, 5.0)}) == [(raised_at("beyond_any", 2), "critical", "beyond_any")]
    assert told(KlExplosion(), {"kl_mean": np.full(60, 20.0)}, "sequence") == []


def test_a_kl_of_unknown_unit_is_per_response_if_the_policy_earns_its_reward(fires):
    """Twenty nats per token would be another model, which learns nothing."""
    kl, reward = np.where(AT < 100, 0.0, kls(20.0)), 0.01 * AT + np.random.default_rng(2).normal(0.0, 0.1, ROWS)
    columns = {"kl_mean": kl, "rollout_length_mean": np.full(ROWS, 100.0)}
    assert fires(KlExplosion(), {**columns, "reward_mean": reward}, "unstated") == []
    assert fires(KlExplosion(), {**columns, "reward_mean": reward[::-1]}, "unstated")
