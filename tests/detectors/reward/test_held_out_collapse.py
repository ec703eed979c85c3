"""Held-out quality that is lost."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.held_out_collapse import HeldOutCollapse


def every(rows: int, values: list[float]) -> list[float | None]:
    """Measured once in so many rows."""
    return [values[row // rows] if row % rows == 0 else None for row in range(rows * len(values))]


def test_the_second_low_value_is_a_warning_and_the_third_critical(judge):
    accuracy = every(50, [50.8, 55.6, 57.2, 54.0, 56.1, 33.0, 26.8, 26.6, 27.8])
    first, second = judge(HeldOutCollapse(), {"eval_accuracy": accuracy})
    assert (first.index, first.severity) == (300, "warning")
    assert (second.index, second.severity) == (350, "critical")
    assert "Held-out accuracy fell from 55.6 to 26.6" in second.message


def test_a_reward_below_zero_is_measured_by_what_was_gained(where):
    reward = [-2.0, -1.0, -0.5, -0.5, -0.5, -0.6, -1.6, -1.8, -1.7]
    assert where(HeldOutCollapse(), {"eval_reward_mean": every(10, reward)}) == [(70, "warning"), (80, "critical")]


@pytest.mark.parametrize(
    "values",
    [
        [0.2, 0.3, 0.4, 0.5, 0.6, 0.3, 0.6, 0.3, 0.6, 0.6],
        [0.5, 0.55, 0.6, 0.58, 0.5, 0.45, 0.4, 0.42],
        [0.9, 0.2, 0.2, 0.2, 0.2, 0.2],
        list(np.random.default_rng(0).binomial(16, 0.3, 60) / 16),
    ],
    ids=["single ones", "a third of it", "the first was luck", "few questions"],
)
def test_it_is_silent(where, values):
    assert where(HeldOutCollapse(), {"eval_accuracy": every(5, values)}) == []


def test_it_clears_when_quality_is_back(judge):
    values = [0.5] * 6 + [0.1] * 4 + [0.5] * 4
    first, second = judge(HeldOutCollapse(), {"eval_accuracy": every(2, values)})
    assert first.cleared_index == second.cleared_index == 22


def test_without_held_out_data_it_is_inactive(inactive):
    found = inactive(HeldOutCollapse(), {"reward_mean": np.ones(50)})
    assert found == [("held_out_collapse", ["eval_accuracy|eval_reward_mean"])]
