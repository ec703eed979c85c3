"""Steps that go backwards, a machine in trouble, and a user's own limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.run.memory_pressure import MemoryPressure
from rldk.detectors.run.step_regression import StepRegression
from rldk.detectors.run.throughput_drop import ThroughputDrop
from rldk.detectors.run.user_limit import UserLimit
from rldk.judge.engine import Engine

ROWS = 300
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def at(rows: list[int], value: float, otherwise: float = 0.5) -> np.ndarray:
    values = np.full(ROWS, otherwise)
    values[rows] = value
    return values


def between(inside: float, outside: float, start: int = 100, end: int = 200) -> np.ndarray:
    return np.where(np.isin(AT, np.arange(start, end)), inside, outside)


def stepped(steps: list[int]) -> Engine:
    engine = Engine([StepRegression()])
    for step in steps:
        engine.observe(Event(step, {"loss": 0.5}))
    return engine


@pytest.mark.parametrize("steps", [range(50), [0] * 50, range(-50, 0), [n // 4 for n in range(80)], [0, 10, 1000, 10**12]])
def test_steps_that_rise_or_stand_are_silent(steps):
    assert stepped(list(steps)).anomalies == []


def test_a_step_that_goes_back(judge):
    (anomaly,) = stepped([*range(50), *range(20, 60)]).anomalies
    assert (anomaly.index, anomaly.step, anomaly.severity, anomaly.cleared_index) == (50, 20, "warning", 55)
    assert anomaly.message == "The step went back from 49 to 20."


def test_two_logs_in_one_are_told_a_few_times_and_not_for_each_row():
    engine = stepped([value for n in range(500) for value in (n, n + 1000)])
    assert [anomaly.index for anomaly in engine.anomalies] == [2]


def test_slow_steps_now_and_then_are_silent(where):
    speed = 1000.0 * np.exp(noise(0.1)) * np.where(AT % 25 < 4, 0.1, 1.0)
    time = np.exp(noise(0.1)) * np.where(AT % 25 < 4, 10.0, 1.0)
    assert where(ThroughputDrop(), {"tokens_per_second": speed}) == []
    assert where(ThroughputDrop(), {"step_time": time}) == []


def test_a_slow_start_is_silent(where):
    assert (
        where(ThroughputDrop(), {"tokens_per_second": np.where(AT < 5, 50.0, 1000.0), "step_time": np.where(AT < 5, 20.0, 1.0)})
        == []
    )


def test_steps_that_take_longer_since_responses_are_longer_are_silent(where):
    grown = {"step_time": between(5.0, 1.0), "rollout_length_mean": between(600.0, 100.0)}
    assert where(ThroughputDrop(), grown) == []


def test_fewer_tokens_a_second_since_responses_are_shorter_are_silent(where):
    shorter = {"tokens_per_second": between(300.0, 1000.0), "rollout_length_mean": between(20.0, 100.0)}
    assert where(ThroughputDrop(), shorter) == []


def test_a_drop_is_no_smaller_for_responses_that_had_grown_before_it(where):
    """Responses are three times as long as at the start, but they were so when the throughput was at its best."""
    length = {"rollout_length_mean": 100.0 + np.minimum(2.5 * AT, 200.0)}
    speed = np.minimum(800.0 + 3.0 * AT, 1000.0)
    assert where(ThroughputDrop(), {"tokens_per_second": np.where(AT < 150, speed, 300.0), **length}) == [(171, "warning")]
    slower = {"tokens_per_second": between(300.0, 1000.0), "rollout_length_mean": between(300.0, 100.0)}
    assert where(ThroughputDrop(), slower) == []


def test_a_throughput_that_drops(judge):
    (anomaly,) = judge(ThroughputDrop(), {"tokens_per_second": between(300.0, 1000.0)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (121, "warning", 102, 211)
    assert anomaly.message == "Throughput fell from 1000 to 300 tokens per second."


def test_steps_that_take_longer(judge):
    (anomaly,) = judge(ThroughputDrop(), {"step_time": between(4.0, 1.0)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (121, "warning", 102, 211)
    assert "A step takes 4 s, 4 times as long" in anomaly.message


@pytest.mark.parametrize("usage", [0.5, 0.9])
def test_memory_in_use_is_silent(where, usage):
    assert where(MemoryPressure(), {"memory_usage": usage + noise(0.01), "gpu_memory_gb": 80.0 * usage + noise(0.5)}) == []


def test_memory_that_doubled_and_came_back_down_is_silent(where):
    assert where(MemoryPressure(), {"gpu_memory_gb": np.where(AT < 30, 20.0, np.where(AT < 34, 60.0, 45.0))}) == []


def test_a_little_memory_may_double(where):
    assert where(MemoryPressure(), {"gpu_memory_gb": 0.1 + AT / 200.0}) == []


def test_memory_that_is_full(judge):
    (anomaly,) = judge(MemoryPressure(), {"memory_usage": between(0.98, 0.7)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (106, "warning", 102, 206)
    assert anomaly.message == "98% of the memory is in use."


@pytest.mark.parametrize("name", ["gpu_memory_gb", "cpu_memory_gb"])
def test_memory_that_grows_without_end(judge, name):
    (anomaly,) = judge(MemoryPressure(), {name: 10.0 + 0.1 * np.maximum(AT - 50, 0)})
    assert (anomaly.index, anomaly.severity) == (157, "warning")
    assert f"{name} grew from 10 to" in anomaly.message


def test_a_limit_fires_as_told_and_each_time(judge):
    found = judge(UserLimit("kl_mean", highest=0.1), {"kl_mean": at([10, 11, 50], 0.3, 0.05)})
    assert [(anomaly.index, anomaly.severity, anomaly.cleared_index) for anomaly in found] == [
        (10, "warning", 12),
        (50, "warning", 51),
    ]
    assert found[0].message == "kl_mean is 0.3, above your limit of 0.1."
    assert found[0].type == "user_limit_exceeded"


def test_a_limit_from_below_and_its_severity(judge):
    (anomaly,) = judge(UserLimit("reward_mean", lowest=0.2, severity="critical"), {"reward_mean": at([70], 0.1)})
    assert (anomaly.index, anomaly.severity, anomaly.threshold) == (70, "critical", 0.2)
    assert anomaly.message == "reward_mean is 0.1, below your limit of 0.2."


def test_a_limit_holds_for_the_limit_itself_and_for_rows_without_the_metric(where):
    assert where(UserLimit("kl_mean", highest=0.1), {"kl_mean": [None, 0.1, None] * 30, "loss": np.ones(90)}) == []


@pytest.mark.parametrize("value", [math.inf, 1e308])
def test_a_limit_is_crossed_by_infinity(where, value):
    assert where(UserLimit("kl_mean", highest=0.1), {"kl_mean": at([10], value, 0.05)}) == [(10, "warning")]


def test_a_value_that_is_not_a_number_is_above_no_limit(where):
    assert where(UserLimit("kl_mean", highest=0.1), {"kl_mean": at([10], math.nan, 0.05)}) == []


def test_a_metric_of_the_users_own_can_be_limited(where):
    assert where(UserLimit("mine/score", highest=1.0), {"mine/score": at([3], 2.0)}) == [(3, "warning")]


def limited(limit: UserLimit, unit: str, **metrics: float):
    engine = Engine([limit], reductions={"kl_mean": unit} if unit else {})
    return engine.observe(Event(1, metrics))


@pytest.mark.parametrize(("name", "unit", "value"), [
    ("kl_per_token", "sequence", 0.4), ("kl_per_token", "token", 8.0), ("kl_per_sequence", "token", 160.0),
    ("kl_per_sequence", "sequence", 8.0), ("kl_mean", "sequence", 8.0),
])  # fmt: skip
def test_a_limit_of_the_kl_counts_in_its_own_unit_and_says_it(name, unit, value):
    (anomaly,) = limited(UserLimit(name, highest=0.1), unit, kl_mean=8.0, rollout_length_mean=20.0)
    words = "nats per token" if name == "kl_per_token" or (name == "kl_mean" and unit == "token") else "nats per response"
    assert anomaly.value == pytest.approx(value) and f"{value:.4g} {words}, above your limit of 0.1." in anomaly.message
    assert ("set `kl_per_token`" in anomaly.advice) == (name == "kl_mean")


def test_a_limit_in_a_unit_that_is_not_known_is_not_judged():
    assert limited(UserLimit("kl_per_token", highest=0.1), "", kl_mean=8.0, rollout_length_mean=20.0) == []
    assert limited(UserLimit("kl_per_token", highest=0.1), "sequence", kl_mean=8.0) == []


def test_each_limit_has_its_own_advice():
    metrics = ("kl_mean", "clip_frac", "grad_norm", "memory_usage", "reward_mean", "entropy_mean", "value_loss")
    advice = [limited(UserLimit(name, highest=0.1), "", **{name: 8.0})[0].advice for name in metrics]
    assert len(set(advice)) == len(metrics) and UserLimit.advice not in advice
    assert limited(UserLimit("my/metric", highest=0.1), "", **{"my/metric": 8.0})[0].advice == UserLimit.advice
