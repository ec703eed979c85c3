"""Responses that grow without end, shrink to nothing, or do not end."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.length.eos_starvation import EosStarvation
from rldk.detectors.length.length_collapse import LengthCollapse
from rldk.detectors.length.length_runaway import LengthRunaway

ROWS = 300
AT = np.arange(ROWS)
KINDS = (LengthRunaway, LengthCollapse, EosStarvation)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


RISING = 0.2 + AT / 400.0 + noise(0.01)
STEADY = 0.5 + noise(0.01)
FALLEN = 0.8 - 0.7 * np.clip((AT - 200) / 10.0, 0.0, 1.0) + noise(0.01)


def soon_after_the_fall(found: tuple[int, str, str]) -> bool:
    """Whether this is the critical that goes with `FALLEN`; exactly where is for the tests of the reward to say."""
    index, *said = found
    return said == ["critical", "with_damage"] and 205 <= index <= 214


def at(kind, clause: str, since: int = 102) -> int:
    """The row at which a clause is raised that holds since a row: two after the change, when a median of five has moved."""
    return since - 1 + kind.clauses[clause].persist


STOPPED = (at(EosStarvation, "stopped"), "critical", "stopped")
AT_ONCE = (at(EosStarvation, "stopped_at_once"), "critical", "stopped_at_once")


def between(inside: float, outside: float, start: int = 100, end: int = 250) -> np.ndarray:
    return np.where(np.isin(AT, np.arange(start, end)), inside, outside)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_lengths_that_vary_are_silent(where, kind, seed):
    usual = {"rollout_length_mean": 200.0 * np.exp(noise(0.3, seed)), "truncated_frac": np.clip(0.1 + noise(0.1, seed), 0.0, 1.0)}
    assert where(kind(), {**usual, "reward_mean": STEADY}) == []


@pytest.mark.parametrize("kind", [LengthRunaway, LengthCollapse])
def test_every_response_at_the_cap_from_the_start_is_how_the_run_is(where, kind):
    full = {"rollout_length_mean": np.full(ROWS, 512.0), "truncated_frac": np.ones(ROWS)}
    assert where(kind(), {**full, "reward_mean": STEADY}) == []


def test_reasoning_that_grows_with_the_reward_is_a_note(told):
    growing = {"rollout_length_mean": 100.0 * np.exp(AT / 100.0), "reward_mean": RISING}
    assert told(LengthRunaway(), growing) == [(at(LengthRunaway, "reasoning", 151), "note", "reasoning")]


def test_growth_after_the_reward_has_stopped_rising_is_a_warning(told):
    longer = {"rollout_length_mean": np.where(AT < 150, 100.0, np.minimum(100.0 + 10.0 * (AT - 150), 900.0))}
    learnt = np.minimum(AT / 80.0, 1.0) + noise(0.05)
    found = told(LengthRunaway(), {**longer, "reward_mean": learnt})
    assert found[-1][1:] == ("warning", "grown")


@pytest.mark.parametrize(("kind", "columns", "said"), [
    (LengthRunaway, {"kl_mean": 0.02}, "Responses have grown from 100 to 900 tokens on average."),
    (LengthRunaway, {"explained_variance": 0.9}, "The lengths of rollouts have grown from 100 to 900 on average."),
    (LengthCollapse, {"kl_mean": 0.02}, "Responses shrank from 100 to 5 tokens on average."),
    (LengthCollapse, {"explained_variance": 0.9}, "The lengths of rollouts shrank from 100 to 5 on average."),
])  # fmt: skip
def test_lengths_are_in_tokens_only_where_the_policy_is_a_language_model(judge, kind, columns, said):
    lengths = between(900.0 if kind is LengthRunaway else 5.0, 100.0)
    others = {name: np.full(ROWS, value) for name, value in columns.items()}
    (anomaly,) = judge(kind(), {"rollout_length_mean": lengths, "reward_mean": STEADY, **others})
    assert anomaly.message == said


def test_growth_that_no_longer_ends_is_critical_however_the_reward_rises(told):
    growing = {"rollout_length_mean": 100.0 * np.exp(AT / 100.0), "truncated_frac": np.clip(AT / 250.0, 0.0, 1.0)}
    found = told(LengthRunaway(), {**growing, "reward_mean": RISING})
    note, critical = found
    assert note == (at(LengthRunaway, "reasoning", 151), "note", "reasoning")
    assert critical == (at(LengthRunaway, "with_damage", 227), "critical", "with_damage")


def test_a_length_penalty_that_works_is_a_note(told):
    shorter = {"rollout_length_mean": np.maximum(300.0 - 2.0 * AT, 20.0), "reward_mean": RISING}
    assert told(LengthCollapse(), shorter) == [(at(LengthCollapse, "brief", 123), "note", "brief")]


def test_growth_below_the_factor_is_silent(where):
    assert where(LengthRunaway(), {"rollout_length_mean": between(380.0, 100.0), "reward_mean": STEADY}) == []


def test_responses_that_grow_for_nothing(judge):
    (anomaly,) = judge(LengthRunaway(), {"rollout_length_mean": between(500.0, 100.0), "reward_mean": STEADY})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (at(LengthRunaway, "grown"), "warning", "grown")
    assert (anomaly.since, anomaly.cleared_index) == (102, 259)
    assert "from 100 to 500 on average" in anomaly.message


def test_growth_is_critical_once_the_reward_has_fallen(told):
    found = told(LengthRunaway(), {"rollout_length_mean": between(500.0, 100.0, 150, ROWS), "reward_mean": FALLEN})
    assert found[0] == (at(LengthRunaway, "grown", 152), "warning", "grown") and soon_after_the_fall(*found[1:])


def test_responses_that_shrink_for_nothing(judge):
    (anomaly,) = judge(LengthCollapse(), {"rollout_length_mean": between(5.0, 100.0), "reward_mean": STEADY})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (at(LengthCollapse, "shrunk"), "warning", "shrunk")
    assert (anomaly.since, anomaly.cleared_index) == (102, 259)
    assert "shrank from 100 to 5 on average" in anomaly.message


def test_shrinking_is_critical_once_the_reward_has_fallen(told):
    found = told(LengthCollapse(), {"rollout_length_mean": between(5.0, 100.0, 150, ROWS), "reward_mean": FALLEN})
    assert found[0] == (at(LengthCollapse, "shrunk", 152), "warning", "shrunk") and soon_after_the_fall(*found[1:])


SHORT = {"rollout_length_mean": np.full(50, 4.0), "rollout_length_max": np.full(50, 4.0)}


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"rollout_length_mean": np.full(50, 2.0), "truncated_frac": np.ones(50)}, [(6, "critical", "cut_short")]),
        ({"max_response_length": np.full(50, 2.0)}, [(4, "critical", "cut_short")]),
        ({"rollout_length_mean": np.full(50, 5.0), "truncated_frac": np.ones(50)}, []),
        ({"rollout_length_mean": np.full(50, 2.0), "truncated_frac": np.zeros(50)}, []),
        ({"max_response_length": np.full(50, 5.0)}, []),
        (SHORT, [(8, "critical", "cut_short")]),
        ({**SHORT, "truncated_frac": np.zeros(50)}, []),
        ({**SHORT, "eos_frac": np.ones(50)}, []),
        ({**SHORT, "eos_frac": np.where(np.arange(50) < 2, 0.1, 0.9)}, [(8, "critical", "cut_short")]),
        ({"max_response_length": np.full(50, 4.0), "eos_frac": np.ones(50)}, []),
    ],
    ids=[
        "cut off", "limit", "five tokens", "short by nature", "a limit of five", "never longer", "never longer, none cut off",
        "never longer, all ended", "taught to end", "a limit that fits",
    ],
)
def test_no_answer_fits_into_four_tokens(told, columns, found):
    assert told(LengthCollapse(), columns) == found


def test_shrinking_to_a_quarter_is_silent(where):
    assert where(LengthCollapse(), {"rollout_length_mean": between(25.0, 100.0), "reward_mean": STEADY}) == []


@pytest.mark.parametrize(
    "columns",
    [
        {"eos_frac": between(0.0, 0.9)},
        {"eos_count": between(0.0, 30.0)},
        {"truncated_frac": between(1.0, 0.1)},
    ],
    ids=["share", "count", "cut off"],
)
@pytest.mark.parametrize("reward", [STEADY, RISING], ids=["steady", "rising"])
def test_responses_that_no_longer_end_are_critical_whatever_the_reward_does(judge, columns, reward):
    (anomaly,) = judge(EosStarvation(), {**columns, "reward_mean": reward})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == AT_ONCE
    assert (anomaly.since, anomaly.cleared_index) == (102, 259)
    assert anomaly.message.startswith("The share of responses that emit the end token fell from")


def test_without_a_reward_they_are_judged_as_well(told):
    assert told(EosStarvation(), {"eos_frac": between(0.0, 0.9)}) == [AT_ONCE]


def test_a_model_that_seldom_ended_is_a_warning_while_the_reward_thrives_and_all_else_is_well(told):
    columns = {"eos_frac": between(0.02, 0.5), "reward_mean": RISING}
    assert told(EosStarvation(), columns) == [(at(EosStarvation, "stopped"), "warning", "stopped")]
    assert told(EosStarvation(), {**columns, "reward_mean": STEADY}) == [STOPPED]
    broken = {**columns, "eval_perplexity": np.where(AT < 90, 4.0, 30.0)}
    assert told(EosStarvation(), broken) == [STOPPED]


def test_half_of_the_endings_lost_is_a_warning(told):
    fewer = (at(EosStarvation, "fewer"), "warning", "fewer")
    assert told(EosStarvation(), {"eos_frac": between(0.4, 0.9), "reward_mean": RISING}) == [fewer]
    assert told(EosStarvation(), {"eos_frac": between(0.5, 0.9), "reward_mean": STEADY}) == []
    assert told(EosStarvation(), {"eos_frac": between(0.4, 0.9, 100, 111), "reward_mean": STEADY}) == []


NEVER_YET = (at(EosStarvation, "never_yet", 2), "warning", "never_yet")
NEVER = (at(EosStarvation, "never", 2), "critical", "never")


def test_responses_that_never_ended(told):
    never = {"eos_frac": np.zeros(ROWS)}
    assert told(EosStarvation(), never) == [NEVER_YET, NEVER]
    assert told(EosStarvation(), {**never, "reward_mean": STEADY}) == [NEVER_YET, NEVER]
    assert told(EosStarvation(), {**never, "reward_mean": RISING}) == [NEVER_YET]
    assert told(EosStarvation(), {"eos_frac": np.zeros(9)}) == []


def test_a_few_that_end_are_enough_while_the_reward_rises(where):
    assert where(EosStarvation(), {"eos_frac": np.full(ROWS, 0.05), "reward_mean": STEADY + np.arange(ROWS) / 100}) == []


def test_most_truncated_and_nothing_learnt_is_told_and_then_critical(judge):
    found = judge(EosStarvation(), {"truncated_frac": np.full(ROWS, 0.85), "reward_mean": STEADY})
    assert [(one.clause, one.severity) for one in found] == [("mostly_cut", "warning"), ("cut_and_stuck", "critical")]
    assert found[0].index < 30 < 49 < found[1].index and "15%" in found[0].message


def test_half_truncated_is_silent(where):
    assert where(EosStarvation(), {"truncated_frac": np.full(ROWS, 0.5), "reward_mean": STEADY}) == []


def test_a_length_that_varies_as_much_from_row_to_row_is_silent(where):
    rng = np.random.default_rng(1)
    length = np.where(np.arange(ROWS) < 5, 20.0, np.exp(rng.normal(5.5, 0.8, ROWS)))  # one question a row
    reward = rng.binomial(8, 0.6, ROWS) / 8
    assert where(LengthRunaway(), {"rollout_length_mean": length, "reward_mean": reward}) == []


def never_ending(expected):
    """Responses that never end while the reward rises; the probe sees the first eight rows."""
    rows = 30
    return {
        "eos_frac": [0.0] * rows,
        "reward_mean": [0.02 * row for row in range(rows)],
        "eos_expected": [expected] * 8 + [None] * (rows - 8),
    }


def test_responses_that_should_end_and_do_not_are_critical_though_the_reward_rises(told):
    clauses = {clause: severity for _, severity, clause in told(EosStarvation(), never_ending(1.0))}
    assert clauses == {"blocked": "critical"}


@pytest.mark.parametrize("expected", [0.01, None])
def test_a_model_that_gives_the_end_token_no_chance_is_not_blocked(expected, told):
    assert "blocked" not in {clause for *_, clause in told(EosStarvation(), never_ending(expected))}


@pytest.mark.parametrize(
    ("falls", "clause", "row"),
    [(np.where(AT < 100, 0.95, 0.0), "stopped_at_once", 106), (np.clip(0.95 - 0.1 * (AT - 100), 0.0, 0.95), "stopped", 120)],
    ids=["at once", "over ten rows"],
)
def test_endings_that_stop_from_one_row_to_the_next_are_not_learnt(told, falls, clause, row):
    critical = [(index, said) for index, severity, said in told(EosStarvation(), {"eos_frac": falls}) if severity == "critical"]
    assert critical == [(row, clause)]


@pytest.mark.parametrize(
    ("share", "excludes", "found"),
    [(0.6, True, ["left_out"]), (0.95, True, ["left_out", "almost_all_left_out"]), (0.4, True, []), (0.6, False, [])],
)
def test_truncated_responses_that_the_trainer_leaves_out(told, share, excludes, found):
    rising = {"truncated_frac": np.full(40, share), "reward_mean": np.linspace(0.0, 1.0, 40)}
    said = told(EosStarvation(), rising, None, {"mask_truncated_completions": excludes})
    assert [clause for _, _, clause in said if "left_out" in clause] == found


def test_a_length_that_is_lost_in_the_first_update(told):
    lost = {"rollout_length_mean": [53.0, *[2.6, 2.4] * 10], "reward_mean": [1.7, *[2.4, 2.0] * 10]}
    assert [clause for *_, clause in told(LengthCollapse(), lost)] == ["shrunk"]


def test_responses_that_shrank_before_the_reward_rose_have_not_recovered(judge):
    at = np.arange(300)
    columns = {
        "rollout_length_mean": np.where(at < 100, 600.0, 60.0) + np.random.default_rng(0).normal(0.0, 3.0, 300),
        "reward_mean": 0.3 + 0.5 * np.clip((at - 180) / 60.0, 0.0, 1.0) + np.random.default_rng(1).normal(0.0, 0.02, 300),
    }
    (found,) = judge(LengthCollapse(), columns)
    assert (found.clause, found.cleared_index) == ("shrunk", None)
