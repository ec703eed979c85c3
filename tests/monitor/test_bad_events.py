"""One bad event never ends the watch: the value that cannot be used is left out and noted, and everything else goes on."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import rldk
from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.log import EventReader
from rldk.monitor import Monitor
from rldk.testing.streams import faulty


class Refusing:
    """A number of the training's own that cannot be read."""

    def __float__(self) -> float:
        raise KeyError("no number here")

    def __repr__(self) -> str:
        raise KeyError("no text either")


BAD = [
    None, "high", [0.1, 0.2], np.zeros(3), 1 + 2j, np.complex64(1j), 10**400, -(10**400), object(), Refusing(), {"mean": 1.0},
    b"\xff", float, np.array("x"),
]  # fmt: skip
EVENTS = faulty("kl_explosion", steps=120, onset=60, seed=1)


def watched(monitor: Monitor, events: list[Any]) -> Monitor:
    for event in events:
        monitor.observe(event)
    return monitor


@pytest.mark.parametrize("bad", BAD, ids=lambda value: type(value).__name__)
def test_a_metric_that_is_not_a_number_costs_itself_alone(bad: Any, tmp_path: Path) -> None:
    spoilt = list(EVENTS)
    spoilt[20] = Event(EVENTS[20].step, {**EVENTS[20].metrics, "own": bad})
    with Monitor(tmp_path, run_id="run", stop_on="critical") as monitor:
        watched(monitor, spoilt)
    whole = watched(Monitor(stop_on="critical"), EVENTS)
    assert monitor.forensics.engine.events == len(EVENTS)
    assert [one.to_dict() for one in monitor.anomalies] == [one.to_dict() for one in whole.anomalies]
    assert monitor.stop is not None and whole.stop is not None and monitor.stop.step == whole.stop.step
    logged = list(EventReader(tmp_path / "run_events.jsonl"))
    assert [event.step for event in logged] == [event.step for event in EVENTS]
    if not isinstance(bad, int) and bad is not None:
        assert any("own" in note and "left out" in note for note in logged[20].notes)


@pytest.mark.parametrize("step", ["x", None, math.nan, 1.5, 2**63, 10**400, [3], Refusing(), 1j])
def test_a_step_that_is_none_is_that_of_the_event_before(step: Any, tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run") as monitor:
        monitor.observe(Event(7, {"reward_mean": 1.0}))
        monitor.observe(Event(step, {"reward_mean": 2.0}))
        monitor.observe(Event(8, {"reward_mean": 3.0}))
    reader = EventReader(tmp_path / "run_events.jsonl")
    assert [event.step for event in reader] == [7, 7, 8] and reader.problems.total == 0
    assert monitor.forensics.engine.last_step == 8 and monitor.forensics.engine.events == 2


@pytest.mark.parametrize(
    "odd",
    [
        {"metrics": None}, {"metrics": [1]}, {"wall_time": "noon"}, {"wall_time": 10**400}, {"rng": 5}, {"data_slice": None},
        {"model_info": "x"}, {"model_info": {"reductions": 3}}, {"notes": "one note"}, {"notes": 7}, {"nulls": None},
        {"extra": None}, {"metrics": {3: 1.0, None: 2.0}}, {"metrics": {"\ud800": 1.0}}, {"metrics": {"n" * 10_000: 1.0}},
    ],
    ids=str,
)  # fmt: skip
def test_an_event_of_odd_parts_is_logged_and_judged(odd: dict[str, Any], tmp_path: Path) -> None:
    given: dict[str, Any] = {"step": 2, "metrics": {"reward_mean": 5.0}, **odd}
    with Monitor(tmp_path, run_id="run", limits={"kl_mean": 1.0}) as monitor:
        watched(monitor, [Event(1, {"kl_mean": 0.0}), Event(**given), Event(3, {"kl_mean": 2.0})])
    reader = EventReader(tmp_path / "run_events.jsonl")
    assert [event.step for event in reader] == [1, 2, 3] and reader.problems.total == 0
    assert [one.type for one in monitor.anomalies] == ["user_limit_exceeded"] and monitor.guard.broken == {}


def test_what_is_left_out_is_said_once_per_metric(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rldk"), Monitor() as monitor:
        watched(monitor, [Event(step, {"own": "text", "other": "text"}) for step in range(50)])
    assert len(caplog.records) == 2


def test_text_that_is_logged_as_a_metric_is_said_once_and_costs_itself_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rldk"), rldk.start("run", output_dir=tmp_path, quiet=True) as run:
        for step in range(6):
            run.log(step, {"phase": "train", "seed": 3, "odd": Refusing()}, kl=f"abc{step}", reward="0.5", entropy=None)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "rldk: The metric odd is Refusing, not a number: it is left out.",
        "rldk: The metric kl is str 'abc0', not a number: it is left out.",
    ]
    logged = list(EventReader(tmp_path / "run_events.jsonl"))
    assert [event.metrics for event in logged] == [{"reward_mean": 0.5}] * 6 and logged[0].notes == [one[6:] for one in said]


def test_a_step_that_is_none_takes_the_next_number_in_a_loop_of_ones_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[Any] = [0, 1, "second", np.float32(3.0), None, math.nan, 6, Refusing(), np.int64(8), 8.5]
    with caplog.at_level(logging.WARNING, "rldk"), rldk.start("run", output_dir=tmp_path, quiet=True) as run:
        for step in steps:
            run.log(step, kl=0.1)
    assert [event.step for event in EventReader(tmp_path / "run_events.jsonl")] == list(range(10))
    said = [record.getMessage() for record in caplog.records]
    assert said == ["rldk: The step str 'second' is not a whole number: the next one, 2, is used."]
    assert all(record.exc_info is None for record in caplog.records)


def test_a_row_whose_step_is_under_another_key_keeps_it() -> None:
    monitor = watched(Monitor(), [{"step": None, "global_step": 10 * n, "reward": 0.1} for n in range(3)])
    assert monitor.forensics.engine.last_step == 20


def test_a_run_with_a_new_metric_in_each_event_stays_bounded(tmp_path: Path) -> None:
    with Monitor(run_id="run") as monitor:
        watched(monitor, [Event(step, {f"m{step}_{n}": 1.0 for n in range(500)}) for step in range(40)])
        watched(monitor, [Event(step, {"reward_mean": 1.0, f"late{step}": 1.0}) for step in range(40, 60)])
    assert len(monitor.sources) <= 10_000 and monitor.forensics.engine.events == 60


class Faulty(Detector):
    """Raises on the events it is told to."""

    type = "faulty"
    family = "run"
    needs = (("reward_mean",),)
    advice = "None."
    clauses: ClassVar = {}

    def __init__(self, when: Any, error: type[BaseException] = RuntimeError) -> None:
        super().__init__()
        self.when, self.error, self.calls = when, error, 0

    def find(self, view: Any) -> list[Any]:
        self.calls += 1
        if self.when(view.index):
            raise self.error("made to fail")
        return []


@pytest.mark.parametrize("error", [RuntimeError, GeneratorExit])
@pytest.mark.parametrize(("when", "calls"), [(lambda at: at == 5, 20), (lambda at: at >= 5, 8), (lambda at: True, 3)])
def test_a_detector_that_keeps_failing_is_dropped_alone(when: Any, calls: int, error: Any, caplog: Any) -> None:
    monitor = Monitor(limits={"reward_mean": 10.0})
    detector = Faulty(when, error)
    monitor.forensics.engine.detectors.insert(0, detector)
    with caplog.at_level(logging.WARNING, "rldk"):
        watched(monitor, [Event(step, {"reward_mean": 1.0 + step}) for step in range(20)])
    assert detector.calls == calls and len(caplog.records) == 1
    assert (detector in monitor.forensics.engine.detectors) == (calls == 20)
    assert [one.type for one in monitor.anomalies] == ["user_limit_exceeded"] and monitor.forensics.engine.events == 20


def test_a_fault_inside_the_engine_costs_that_event_and_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from rldk.judge import engine

    whole, real = watched(Monitor(), [event for event in EVENTS if event.step != EVENTS[30].step]), engine.update_all

    def sometimes(followed: Any, metrics: Any, index: int) -> None:
        if metrics.get("kl_mean") == EVENTS[30].metrics["kl_mean"]:
            raise ArithmeticError("made to fail")
        real(followed, metrics, index)

    monkeypatch.setattr(engine, "update_all", sometimes)
    with Monitor(tmp_path, run_id="run") as monitor:
        watched(monitor, EVENTS)
    assert [(one.type, one.index) for one in monitor.anomalies] == [(one.type, one.index) for one in whole.anomalies]
    assert len(list(EventReader(tmp_path / "run_events.jsonl"))) == len(EVENTS)
