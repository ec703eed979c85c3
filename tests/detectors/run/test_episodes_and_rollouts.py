"""Episodes that break, rollouts that are too old, and metrics that vanish."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.run.broken_episodes import BrokenEpisodes
from rldk.detectors.run.stale_rollouts import StaleRollouts
from rldk.detectors.run.vanished_metric import VanishedMetric
from rldk.judge.engine import Engine

ROWS = 120
AT = np.arange(ROWS)
LATE = AT >= 60


def noisy(values: np.ndarray | float, seed: int = 0) -> np.ndarray:
    return np.asarray(values) * np.exp(np.random.default_rng(seed).normal(0.0, 0.02, ROWS))


def test_aborted_episodes(told):
    assert told(BrokenEpisodes(), {"aborted_frac": noisy(0.6)}) == [(13, "warning", "half_aborted")]
    assert told(BrokenEpisodes(), {"aborted_frac": noisy(0.95)})[-1] == (23, "critical", "most_aborted")
    assert told(BrokenEpisodes(), {"aborted_frac": noisy(0.2)}) == []


@pytest.mark.parametrize("name", ["malformed_frac", "tool_failure_rate", "max_turns_frac", "tool_loop_exhausted_frac"])
def test_a_share_that_grows(told, name):
    assert told(BrokenEpisodes(), {name: noisy(np.where(LATE, 0.5, 0.05))}) == [(71, "warning", "more_often")]


@pytest.mark.parametrize("course", [np.full(ROWS, 0.8), 0.9 - 0.8 * AT / ROWS, np.full(ROWS, 0.1)])
def test_a_format_that_is_still_to_be_learnt_is_silent(told, course):
    assert told(BrokenEpisodes(), {"malformed_frac": course, "tool_failure_rate": course}) == []


def test_staleness_that_grows_and_staleness_beyond_any_recipe(told):
    assert told(StaleRollouts(), {"staleness_mean": noisy(np.where(LATE, 6.0, 1.0))}) == [(76, "warning", "grown")]
    assert told(StaleRollouts(), {"staleness_mean": noisy(12.0)}) == [(18, "warning", "old")]


@pytest.mark.parametrize("age", [0.0, 1.0, 3.9, 6.0])
def test_staleness_that_recipes_allow_is_silent(told, age):
    assert told(StaleRollouts(), {"staleness_mean": noisy(age)}) == []


def test_dropped_rollouts(told):
    columns = {"dropped_rollouts": noisy(80.0), "batch_size": np.full(ROWS, 64.0)}
    assert told(StaleRollouts(), columns) == [(18, "warning", "dropped")]
    assert told(StaleRollouts(), {"dropped_rollouts": noisy(5.0)}) == [(13, "note", "some_dropped")]
    assert told(StaleRollouts(), {"dropped_rollouts": np.where(AT % 10 == 0, 5.0, 0.0)}) == []


def with_gap(rows: range) -> list[float | None]:
    return [None if row in rows else 1.0 + 0.01 * (row % 7) for row in range(ROWS)]


def test_a_metric_that_is_not_logged_any_more(told, judge):
    columns = {"reward_mean": noisy(0.5), "grad_norm": with_gap(range(50, ROWS))}
    assert told(VanishedMetric(), columns) == [(69, "warning", "gone")]
    (anomaly,) = judge(VanishedMetric(), columns)
    assert anomaly.message == "grad_norm has not been logged for 20 rows, while reward_mean is logged."


def test_a_kl_that_alone_is_not_logged_any_more_is_a_note(told):
    columns = {"reward_mean": noisy(0.5), "kl_mean": with_gap(range(50, ROWS))}
    assert told(VanishedMetric(), columns) == [(69, "note", "kl_gone")]


def test_a_metric_that_returns_clears(judge):
    (anomaly,) = judge(VanishedMetric(), {"reward_mean": noisy(0.5), "grad_norm": with_gap(range(50, 80))})
    assert anomaly.cleared_index == 82


def test_metrics_that_are_logged_now_and_then_are_silent(told):
    sparse = [1.0 if row % 15 == 0 else None for row in range(400)]
    assert told(VanishedMetric(), {"reward_mean": np.full(400, 0.5) + np.arange(400) * 1e-3, "kl_mean": sparse}) == []


def test_a_first_phase_with_its_own_metrics_is_silent(told):
    first = [0.5 if row < 60 else None for row in range(ROWS)]
    assert told(VanishedMetric(), {"loss": first, "reward_mean": [None if row < 60 else 0.5 for row in range(ROWS)]}) == []


def test_a_value_that_is_logged_as_nan_has_not_vanished() -> None:
    engine = Engine([VanishedMetric()])
    for row in range(ROWS):
        engine.observe(Event(row, {"reward_mean": 0.5, "kl_mean": float("nan") if row >= 50 else 0.1}))
    assert engine.anomalies == []


def test_nulls_are_told_since_json_has_no_nan() -> None:
    engine = Engine([VanishedMetric()])
    for row in range(ROWS):
        late = row >= 50
        metrics = {"reward_mean": 0.5, **({} if late else {"loss": 0.1, "grad_norm": 1.0})}
        engine.observe(Event(row, metrics, nulls=("grad_norm", "loss") if late else ()))
    (anomaly,) = engine.anomalies
    assert (anomaly.index, anomaly.severity) == (69, "warning")
    assert anomaly.message == "loss and 1 more have been null for 20 rows, while reward_mean is logged."


def test_rows_of_an_evaluation_are_not_counted() -> None:
    engine = Engine([VanishedMetric()])
    for row in range(60):
        engine.observe(Event(row, {"reward_mean": 0.5, "grad_norm": 1.0}))
    for row in range(60, 110):
        engine.observe(Event(row, {"eval_accuracy": 0.5}))
    assert engine.anomalies == []
