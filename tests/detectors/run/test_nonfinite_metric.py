"""Numbers that are not finite: at once where they reach the weights, else after many rows."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.run.nonfinite_metric import NonfiniteMetric
from rldk.judge.engine import Engine

ROWS = 100


def at(rows: list[int] | range, value: float, otherwise: float = 0.5) -> np.ndarray:
    values = np.full(ROWS, otherwise)
    values[list(rows)] = value
    return values


def test_spreads_of_one_and_metrics_of_others_are_not_watched(told):
    columns = {"loss": at([], 0.0), "reward_std": np.full(ROWS, nan), "mine": np.full(ROWS, inf)}
    assert told(NonfiniteMetric(), columns) == []


@pytest.mark.parametrize("value", [nan, inf, -inf, 1e300])
def test_a_loss_is_critical_in_the_first_row_that_has_it(told, value):
    assert told(NonfiniteMetric(), {"loss": at([50], value)}) == [(50, "critical", "loss")]
    assert told(NonfiniteMetric(), {"loss": [value]}) == [(0, "critical", "loss")]


def test_an_update_that_was_skipped_is_a_note(told):
    columns = {"loss": at([50], nan), "update_applied": at([50], 0.0, 1.0)}
    assert told(NonfiniteMetric(), columns) == [(50, "note", "once")]


def test_a_loss_scaler_may_lose_single_steps(told):
    assert told(NonfiniteMetric(), {"grad_norm": at([20, 40, 60, 80], inf)}) == [(20, "note", "once")]


def test_gradient_norms_alone_are_critical_after_eight_in_a_row(told):
    few = [(50, "note", "once"), (52, "warning", "again")]  # a loss scaler skips two steps as easily as one
    assert told(NonfiniteMetric(), {"grad_norm": at(range(50, 57), inf)}) == few
    assert told(NonfiniteMetric(), {"grad_norm": at(range(50, 58), inf)}) == [*few, (57, "critical", "others")]


def test_a_loss_of_zero_beside_them_hides_a_nan(told):
    columns = {"grad_norm": at([50, 51], nan), "loss": at([50, 51], 0.0)}
    assert told(NonfiniteMetric(), columns) == [(50, "note", "once"), (51, "critical", "others")]


def test_a_reward_is_critical_with_the_fifth_row(told):
    few = [(50, "note", "once"), (51, "warning", "reward_again")]
    assert told(NonfiniteMetric(), {"reward_mean": at([50], nan)}) == few[:1]
    assert told(NonfiniteMetric(), {"reward_mean": at(range(50, 54), nan)}) == few
    assert told(NonfiniteMetric(), {"reward_mean": at(range(50, 55), nan)}) == [*few, (54, "critical", "reward")]


def test_a_reward_that_is_infinite_from_the_first_row(judge):
    warning, critical = judge(NonfiniteMetric(), {"reward_mean": np.full(ROWS, -inf)})
    assert (warning.index, critical.index, critical.severity, critical.clause) == (1, 4, "critical", "reward")
    assert critical.message == "The reward is -inf in 5 rows in a row: the reward function returned it."


def test_other_metrics_are_critical_after_ten_rows(told):
    few = [(50, "note", "once"), (51, "warning", "again")]
    assert told(NonfiniteMetric(), {"kl_mean": at(range(50, 59), nan)}) == few
    assert told(NonfiniteMetric(), {"kl_mean": at(range(50, 60), nan)}) == [*few, (59, "critical", "others")]


def test_a_metric_that_is_measured_now_and_then_is_silent(told):
    assert told(NonfiniteMetric(), {"kl_mean": np.where(np.arange(ROWS) % 2, nan, 0.5)}) == []


def test_three_metrics_in_one_row_are_critical_at_once(judge):
    (anomaly,) = judge(NonfiniteMetric(), {name: at([50], nan) for name in ("loss", "kl_mean", "entropy_mean")})
    assert (anomaly.index, anomaly.severity, anomaly.evidence) == (50, "critical", {"metrics": 3.0, "in_a_row": 1.0})
    assert anomaly.message == "loss, kl_mean, entropy_mean are not finite (1 in a row)."


def test_numbers_that_training_cannot_hold_are_broken(judge):
    """The sum of two of them may well be 0."""
    (one,) = judge(NonfiniteMetric(), {"loss": [0.5] * 20 + [1e300]})
    assert (one.index, one.message) == (20, "loss is larger than any 32-bit float.")
    signs = [1e308 if row % 2 else -1e308 for row in range(30)]
    (critical,) = judge(NonfiniteMetric(), {"loss": [1e308] * 30, "kl_mean": signs, "reward_mean": signs})
    assert (critical.index, critical.severity) == (0, "critical")
    assert judge(NonfiniteMetric(), {"loss": [1e37] * 20}) == []


def test_a_loss_that_never_has_a_value():
    def anomalies(first: float | None) -> list[tuple[int, str, str]]:
        engine = Engine([NonfiniteMetric()])
        for row in range(40):
            has = first is not None and row == 0
            metrics = {"reward_mean": 0.1 * row} | ({"loss": first} if has else {})
            engine.observe(Event(row, metrics, nulls=() if has else ("loss",)))
        return [(one.index, one.severity, one.clause) for one in engine.anomalies]

    assert anomalies(None) == [(19, "warning", "never")]
    assert anomalies(0.5) == []  # it had one: what is missing later is another's
