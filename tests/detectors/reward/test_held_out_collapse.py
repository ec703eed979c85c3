"""Held-out quality that is lost, or that never changes."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.held_out_collapse import HeldOutCollapse


def every(rows: int, values: list[float]) -> list[float | None]:
    """Measured in every n-th row."""
    return [values[row // rows] if row % rows == 0 else None for row in range(rows * len(values))]


CALM = [0.5, 0.52, 0.5, 0.51, 0.5, 0.52]


def test_the_second_low_value_is_a_warning_and_the_third_is_critical(judge):
    first, second = judge(HeldOutCollapse(), {"eval_accuracy": every(50, [*CALM, 0.1, 0.11, 0.1, 0.12])})
    assert (first.index, first.severity, first.clause, first.since) == (350, "warning", "slipping", 350)
    assert (second.index, second.severity, second.clause, second.since) == (400, "critical", "lost", 350)
    assert "Held-out accuracy fell from 0.51 to 0.1" in second.message


def test_a_noisy_course_takes_one_more(clauses):
    accuracy = every(50, [50.8, 55.6, 57.2, 54.0, 56.1, 33.0, 26.8, 26.6, 27.8])
    assert clauses(HeldOutCollapse(), {"eval_accuracy": accuracy}) == [(350, "warning", "slipping"), (400, "critical", "lost")]


def test_six_evaluations_that_slide_are_told_at_once(clauses):
    """The last of them is the end of the log: there is none to wait for."""
    slide = [0.41, 0.46, 0.43, 0.37, 0.30, 0.24]
    assert clauses(HeldOutCollapse(), {"eval_accuracy": every(50, slide)}) == [(250, "warning", "slipping")]


@pytest.mark.parametrize("zero", [0.0, -40.0, 100.0])
def test_a_reward_of_any_zero_that_loses_more_than_it_gained(clauses, zero):
    reward = [-1.0, -0.8, -0.6, -0.5, -0.5, -0.6, -1.6, -1.8, -1.7, -1.7]
    columns = {"eval_reward_mean": every(10, [zero + value for value in reward])}
    assert clauses(HeldOutCollapse(), columns) == [(70, "warning", "slipping"), (80, "critical", "lost")]


def test_a_tenth_of_the_best_is_a_warning(clauses):
    values = [0.6, 0.61, 0.6, 0.62, 0.61, 0.6, 0.54, 0.53, 0.53, 0.54, 0.53]
    assert clauses(HeldOutCollapse(), {"eval_accuracy": every(5, values)}) == [(35, "warning", "slipping")]


def test_the_same_number_again_and_again(clauses):
    values = [0.31, 0.4, 0.43, 0.38, 0.41, *[0.25] * 12]
    expected = [(45, "warning", "repeats"), (55, "critical", "pinned")]
    assert clauses(HeldOutCollapse(), {"eval_accuracy": every(5, values)}) == expected
    assert [clause for *_, clause in clauses(HeldOutCollapse(), {"eval_accuracy": every(5, [0.25] * 12)})] == [
        "repeats",
        "pinned",
    ]


def test_an_accuracy_that_is_measured_now_and_then_counts_and_that_of_the_batch_does_not(where):
    values = [0.7, 0.8, 0.9, 0.99, 0.98, 0.99, 0.4, 0.41, 0.4, 0.4]
    assert [severity for _, severity in where(HeldOutCollapse(), {"accuracy": every(10, values)})] == ["warning", "critical"]
    batch = np.where(np.arange(200) < 100, 0.9, 0.5) + np.random.default_rng(0).normal(0.0, 0.01, 200)
    assert where(HeldOutCollapse(), {"accuracy": batch}) == []


@pytest.mark.parametrize(
    "values",
    [
        [0.2, 0.3, 0.4, 0.5, 0.6, 0.3, 0.6, 0.3, 0.6, 0.6],
        [0.5, 0.55, 0.6, 0.58, 0.5, 0.45, 0.4, 0.42],
        [0.31, 0.6, 0.8, 0.9, 0.95, *[1.0] * 12],
        list(np.random.default_rng(1).binomial(4, 0.5, 60) / 4),
    ],
    ids=["single ones", "a third of it, slowly", "perfect", "few questions"],
)
def test_it_is_silent(where, values):
    assert where(HeldOutCollapse(), {"eval_accuracy": every(5, values)}) == []


@pytest.mark.parametrize(("questions", "share"), [(16, 0.3), (100, 0.6)])
def test_chance_alone_is_hardly_ever_critical(where, questions, share):
    criticals = 0
    for seed in range(60):
        values = np.random.default_rng(seed).binomial(questions, share, 60) / questions
        criticals += any(severity == "critical" for _, severity in where(HeldOutCollapse(), {"eval_accuracy": values}))
    assert criticals <= 2


def test_it_clears_when_quality_is_back(judge):
    values = [*CALM, 0.1, 0.11, 0.1, 0.12, 0.5, 0.51, 0.52, 0.5]
    assert {anomaly.cleared_index for anomaly in judge(HeldOutCollapse(), {"eval_accuracy": every(2, values)})} == {24}


def test_without_held_out_data_it_is_inactive(inactive):
    found = inactive(HeldOutCollapse(), {"reward_mean": np.ones(50)})
    assert found == [("held_out_collapse", ["eval_accuracy|eval_pass_at_1|eval_reward_mean|accuracy"])]


@pytest.mark.parametrize(("proxy", "found"), [(2.0, ["overoptimised"]), (0.0, [])], ids=["rising", "flat"])
def test_held_out_quality_that_slides_while_the_reward_rises(clauses, proxy, found):
    at = np.arange(60)
    gold = np.where(at < 10, 0.1 * at, 1.0 - 0.006 * (at - 10))
    columns = {"eval_reward_mean": gold, "reward_mean": proxy * (1.0 - np.exp(-at / 20.0)) + 0.01 * (at % 2)}
    assert [clause for *_, clause in clauses(HeldOutCollapse(), columns)] == found


def test_a_steady_slide_is_not_noise(clauses):
    slide = [0.6, 0.52, 0.45, 0.39, 0.33, 0.28, 0.24, 0.2]
    found = [(40, "warning", "slipping"), (50, "critical", "lost")]
    assert clauses(HeldOutCollapse(), {"eval_accuracy": every(10, slide)}) == found
    jumps = [0.6, 0.3, 0.55, 0.25, 0.5, 0.28, 0.4, 0.2]
    assert clauses(HeldOutCollapse(), {"eval_accuracy": every(10, jumps)}) == []


def test_a_few_evaluations_of_a_whole_run_are_enough(told):
    """Eight evaluations: the median of five never sees the best of them."""
    falls = [0.60, 0.66, 0.70, 0.71, 0.62, 0.52, 0.43, 0.36]
    assert [clause for *_, clause in told(HeldOutCollapse(), {"eval_accuracy": every(25, falls)})] != []
    rises = [0.60, 0.66, 0.64, 0.71, 0.68, 0.73, 0.70, 0.74]
    assert told(HeldOutCollapse(), {"eval_accuracy": every(25, rises)}) == []


@pytest.mark.parametrize("zero", [0.0, -40.0, 0.4])
def test_a_reward_that_has_risen_to_its_best_and_stays_there_is_silent(clauses, zero):
    risen = [zero + value for value in (0.0, 0.2, 0.3, 0.5, *[0.6] * 12)]
    assert clauses(HeldOutCollapse(), {"eval_reward_mean": every(20, risen)}) == []
    stuck = [zero + value for value in (0.0, *[0.2] * 12)]  # the policy gives the same answers since the second measurement
    assert clauses(HeldOutCollapse(), {"eval_reward_mean": every(20, stuck)})[-1][1:] == ("critical", "pinned")
