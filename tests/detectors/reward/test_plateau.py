"""Nothing was learnt: said once, late, and not of a reward that is high already."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.plateau import Plateau

ROWS = 1200
AT = np.arange(ROWS)
TOKEN = {"kl_mean": "token"}


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


@pytest.mark.parametrize("seed", range(5))
def test_a_reward_that_rises_is_silent(where, seed):
    assert where(Plateau(), {"reward_mean": 0.4 + 0.3 * AT / ROWS + noise(0.1, seed)}) == []


def test_a_reward_that_is_high_from_the_start_is_left_alone(where):
    assert where(Plateau(), {"reward_mean": np.clip(0.9 + noise(0.02), 0.0, 1.0)}) == []


@pytest.mark.parametrize(("spread", "row"), [(0.3, []), (0.9, [(68, "warning")])])
def test_a_reward_near_one_is_high_unless_its_spread_is_too_wide_for_a_share(where, spread, row):
    assert where(Plateau(), {"reward_mean": 0.85 + noise(0.05, 2), "reward_std": np.full(ROWS, spread)}) == row


def test_what_was_learnt_in_the_first_rows_was_learnt(where):
    """A line through the rest sees no rise, and some scatter."""
    learnt = 0.2 + 0.4 * np.minimum(AT / 40.0, 1.0) - np.where((AT > 480) & (AT < 580), 0.25, 0.0)
    assert where(Plateau(), {"reward_mean": learnt + noise(0.05)}) == []


def test_a_late_start_is_silent(where):
    assert where(Plateau(rows=1000), {"reward_mean": 0.2 + 0.5 * np.clip((AT - 500) / 300.0, 0.0, 1.0) + noise(0.05)}) == []


def test_short_runs_are_not_judged(where):
    assert where(Plateau(), {"reward_mean": (0.3 + noise(0.1))[:205]}) == []


STILL = 0.3 + noise(0.1, 2)


@pytest.mark.parametrize(
    ("reward", "words"), [(STILL, "has not risen beyond chance"), (0.4 - 0.3 * AT / ROWS + noise(0.1), "the reward falls")]
)
def test_no_gain_in_two_hundred_rewards(judge, reward, words):
    (anomaly,) = judge(Plateau(), {"reward_mean": reward, "lr": np.full(ROWS, 1e-7)})
    assert (anomaly.index, anomaly.severity, anomaly.clause, anomaly.since) == (208, "warning", "no_rise", 199)
    assert words in anomaly.message
    assert "The learning rate is 1e-07 now." in anomaly.advice


def test_a_small_gain_has_four_hundred_rewards(clauses):
    little = 0.3 + 0.05 * np.minimum(AT / 60.0, 1.0) + noise(0.1, 2)
    assert clauses(Plateau(), {"reward_mean": little}) == [(403, "warning", "flat")]


def test_what_rose_clearly_may_rest(where):
    """A line through hundreds of rows at the top has no slope left."""
    risen = 0.3 + 0.15 * np.minimum(AT / 40.0, 1.0) - 0.00035 * np.maximum(AT - 60, 0) + noise(0.1, 2)
    assert where(Plateau(), {"reward_mean": risen[:390]}) == []
    assert where(Plateau(), {"reward_mean": risen[60:390]}) != []


def test_no_trend_in_a_log_without_a_kl_is_a_note(told):
    flat = {"reward_mean": (-3.0 + noise(0.5))[:150]}
    assert [(severity, clause) for _, severity, clause in told(Plateau(), flat)] == [("note", "no_trend")]
    little = {name: values[:60] for name, values in {**flat, "kl_mean": np.full(150, 0.01)}.items()}
    assert told(Plateau(), little) == []  # it moves a little: it has time
    assert told(Plateau(), {"reward_mean": (-3.0 + AT / 50.0 + noise(0.5))[:150]}) == []


def test_a_policy_that_has_left_its_reference_for_nothing(clauses):
    assert clauses(Plateau(), {"reward_mean": STILL, "kl_mean": np.full(ROWS, 0.4)}, TOKEN) == [
        (24, "warning", "drifts"), (49, "critical", "gains_nothing")
    ]  # fmt: skip
    far = {"reward_mean": STILL, "kl_mean": np.minimum(0.05 * AT, 1.0)}
    assert clauses(Plateau(), far, TOKEN) == [(24, "warning", "drifts"), (38, "critical", "drifts_far")]


def test_a_policy_that_has_left_its_reference_for_a_better_reward_is_silent(where):
    assert where(Plateau(), {"reward_mean": STILL + 0.002 * AT, "kl_mean": np.minimum(0.02 * AT, 1.0)}, TOKEN) == []


def test_a_policy_that_has_hardly_left_it_has_sixty_updates(clauses):
    grown = {"reward_mean": STILL, "kl_mean": np.minimum(0.02 * AT, 0.25)}
    assert clauses(Plateau(), grown, TOKEN) == [(26, "warning", "wanders"), (53, "critical", "wanders_on")]
    assert clauses(Plateau(), {**grown, "kl_mean": np.full(ROWS, 0.25)}, TOKEN) == [(26, "warning", "wanders")]
    assert clauses(Plateau(), {"reward_mean": STILL, "kl_mean": np.full(ROWS, 0.02)}, TOKEN) == [(74, "warning", "no_gain")]


def test_sooner_where_the_policy_has_not_moved(clauses):
    assert clauses(Plateau(), {"reward_mean": STILL, "kl_mean": np.full(ROWS, 1e-4)}, TOKEN) == [(53, "warning", "still")]


@pytest.mark.parametrize(("update", "found"), [(1e-9, ["still", "frozen"]), (1e-4, ["still"])])
def test_updates_that_change_nothing_are_critical(clauses, update, found):
    columns = {"reward_mean": STILL, "kl_mean": np.full(ROWS, 1e-5), "kl_update": np.full(ROWS, update)}
    assert [clause for *_, clause in clauses(Plateau(), columns, TOKEN)] == found


@pytest.mark.parametrize(("explained", "found"), [(0.99, [(28, "warning", "predictable")]), (0.8, [(208, "warning", "no_rise")])])
def test_returns_that_are_known_before_the_response(clauses, explained, found):
    assert clauses(Plateau(), {"reward_mean": STILL, "explained_variance": np.full(ROWS, explained)}) == found


@pytest.mark.parametrize(("per", "row"), [("token", 74), ("sequence", 53)])
def test_whether_the_policy_has_moved_is_a_matter_of_the_kls_unit(judge, per, row):
    columns = {"reward_mean": STILL, "kl_mean": np.full(ROWS, 0.1), "rollout_length_mean": np.full(ROWS, 300.0)}
    (anomaly,) = judge(Plateau(), columns, {"kl_mean": per})
    assert anomaly.index == row


def test_it_is_taken_back_where_the_reward_rises_after_all(where):
    late = np.where(AT < 700, 0.3, 0.3 + 0.01 * (AT - 700)) + noise(0.1, 2)
    assert where(Plateau(), {"reward_mean": late[:690]}) == [(208, "warning")]
    assert where(Plateau(), {"reward_mean": late}) == []


MOVED = {"kl_mean": np.minimum(0.02 * AT, 0.28)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("logged", [True, False], ids=["spread logged", "spread not logged"])
def test_a_reward_that_has_not_risen_while_the_policy_moves_is_critical(told, seed, logged):
    """Rewards of sixteen responses with a spread of 0.4: each row is off by 0.1."""
    rows = {"reward_mean": (0.3 + noise(0.1, seed))[:200], **{name: values[:200] for name, values in MOVED.items()}}
    if logged:
        rows["reward_std"] = np.full(200, 0.4)
    found = {clause: index for index, _, clause in told(Plateau(), rows, TOKEN)}
    assert 30 <= min(found.get("gains_nothing", ROWS), found.get("wanders_on", ROWS)) <= 90


def test_a_reward_that_was_learnt_and_lost_is_no_plateau(told):
    """The policy has gone far, and over all rows the reward shows no trend; but it is not one that was never learnt."""
    reward = 0.2 + 0.5 * np.minimum(AT / 80.0, 1.0) - 0.6 * np.clip((AT - 150) / 40.0, 0.0, 1.0) + noise(0.05)
    rows = {"reward_mean": reward[:260], "reward_std": np.full(260, 0.4), "kl_mean": np.minimum(0.01 * AT, 2.0)[:260]}
    assert told(Plateau(), rows, TOKEN) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_rise_is_not_ruled_out(told, seed):
    rising = {"reward_mean": (0.3 + 0.2 * AT / 100.0 + noise(0.1, seed))[:100], "reward_std": np.full(100, 0.4)}
    clauses = {clause for *_, clause in told(Plateau(), {**rising, "kl_mean": np.full(100, 0.28)}, TOKEN)}
    assert "gains_nothing" not in clauses


def test_a_reward_that_was_redefined_has_not_stood_still(told):
    """A fall by many spreads is for other detectors."""
    rows = {"reward_mean": (np.where(AT < 50, 3.0, -5.0) + noise(0.1))[:150], "reward_std": np.full(150, 0.4)}
    clauses = {clause for *_, clause in told(Plateau(), {**rows, "kl_mean": np.full(150, 0.28)}, TOKEN)}
    assert not clauses & {"wanders", "wanders_on", "gains_nothing"}


@pytest.mark.parametrize(("change", "found"), [(3e-6, True), (1e-4, False)])
def test_weights_that_hardly_move_are_critical_without_a_trend(told, change, found):
    rows = {"reward_mean": (0.3 + noise(0.1, 2))[:150], "weight_change": np.full(150, change)}
    assert ("hardly_moves" in {clause for *_, clause in told(Plateau(), rows)}) == found


def test_weights_that_move_far_less_than_their_rate_are_critical_however_long_it_takes(told):
    rows = {"reward_mean": (0.3 + noise(0.1, 2))[:150], "weight_change": np.full(150, 2e-5), "lr": np.full(150, 1e-3)}
    assert [clause for *_, clause in told(Plateau(), rows)] == ["hardly_moves"]
    assert [clause for *_, clause in told(Plateau(), {**rows, "lr": np.full(150, 1e-5)})] != ["hardly_moves"]


def parts(main: np.ndarray, minor: np.ndarray) -> dict[str, np.ndarray]:
    found = {"reward_function_mean/correct": main, "reward_function_mean/format": minor, "reward_mean": main + minor}
    return {**found, "reward_std": np.full(ROWS, 0.4), "kl_mean": np.full(ROWS, 0.4)}


def test_a_reward_that_rises_by_its_format_alone_is_told(told):
    form = 0.2 * np.minimum(AT / 30.0, 1.0)
    stuck = parts(-0.1 + noise(0.05), form + noise(0.01, 1))
    assert [said for _, *said in told(Plateau(), stuck, TOKEN)] == [["warning", "part_stuck"]]
    learns = parts(-0.1 + 0.4 * np.minimum(AT / 100.0, 1.0) + noise(0.05), form + noise(0.01, 1))
    assert told(Plateau(), learns, TOKEN) == []
    worth_it = parts(-0.1 + noise(0.05), 5.0 * form + noise(0.01, 1))
    assert told(Plateau(), worth_it, TOKEN) == []


def test_a_trend_of_next_to_nothing_is_no_learning(told):
    """Beyond chance after ninety updates, and still far less than a third of the spread between responses."""
    rows = {
        "reward_mean": (0.15 + 0.0007 * AT + noise(0.05, 3))[:90],
        "reward_std": np.full(90, 0.4),
        "kl_mean": np.minimum(0.02 * AT, 0.2)[:90],
    }
    assert "wanders_on" in {clause for *_, clause in told(Plateau(), rows, TOKEN)}
    assert told(Plateau(), {**rows, "reward_mean": (0.15 + 0.004 * AT + noise(0.05, 3))[:90]}, TOKEN) == []
