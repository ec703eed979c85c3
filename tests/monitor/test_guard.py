"""The guard is whole: no output, however it fails, reaches the training; what can come back comes back."""

from __future__ import annotations

import csv
import errno
import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.log import EventReader
from rldk.monitor import Guard, Monitor, Output, Stop, TrainingStopped
from rldk.monitor.runner import ThreadedRunner


class Raising(Output):
    """Raises one error wherever it is called."""

    own_thread = False

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        raise self.error


class Cancelled(BaseException):
    """As `asyncio.CancelledError`, which is not an `Exception`."""


@pytest.mark.parametrize("error", [Cancelled(), GeneratorExit(), MemoryError(), RecursionError(), StopIteration()])
def test_no_error_of_an_output_reaches_the_training(error: BaseException) -> None:
    with Monitor(outputs=[Raising(error)]) as monitor:
        for step in range(5):
            monitor.observe(Event(step, {"reward_mean": 1.0}))
    assert monitor.forensics.engine.events == 5 and "output" in monitor.guard.broken


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), TrainingStopped(Stop(1, 1, "x", "critical", "m"))])
def test_the_users_own_end_and_a_stop_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        Monitor(outputs=[Raising(error)]).observe(Event(0, {"reward_mean": 1.0}))


class Nameless(Output):
    """Has a key that cannot be read."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    @property
    def key(self) -> str:
        raise ValueError("no name")

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self.seen.append(event.step)


def test_an_output_without_a_key_is_called_all_the_same() -> None:
    output = Nameless()
    with Monitor(outputs=[output]) as monitor:
        monitor.observe(Event(1, {"reward_mean": 1.0}))
        monitor.alert(1, "own", "Something.")
        monitor.saved(1)
    assert output.seen == [1]


class Slow(Output):
    """Does not return before it is told to."""

    def __init__(self) -> None:
        self.go, self.seen, self.closed = threading.Event(), [], False

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self.go.wait(60)
        self.seen.append(event.step)

    def close(self) -> None:
        self.closed = True


def test_training_never_waits_for_a_slow_output_and_its_queue_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    output = Slow()
    with caplog.at_level(logging.WARNING, "rldk"), Monitor(outputs=[output]) as monitor:
        for step in range(3000):
            monitor.observe(Event(step, {"reward_mean": 1.0}))
        assert output.seen == []
        output.go.set()
    assert output.seen == list(range(len(output.seen))) and 1000 <= len(output.seen) <= 1002
    assert output.closed and [("too slow" in record.getMessage()) for record in caplog.records] == [True]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rldk")]


def test_an_output_that_never_returns_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    output = Slow()
    runner = ThreadedRunner(output, Guard(), close_seconds=0.05)
    with caplog.at_level(logging.WARNING, "rldk"):
        runner.start(Monitor())
        for step in range(3):
            runner.take(Event(step), [])
        runner.close()
    output.go.set()
    assert "did not end" in caplog.text and not output.closed


def test_what_fails_of_a_disk_is_tried_again_ever_less_often() -> None:
    now, calls, full = [0.0], [], [True]

    def write() -> None:
        calls.append(now[0])
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    guard = Guard(clock=lambda: now[0])
    for second in range(200):
        now[0] = float(second)
        guard.call("table", write)
    assert 5 <= len(calls) <= 15 and guard.broken
    full[0] = False
    now[0] = 300.0
    guard.call("table", write)
    guard.call("table", write)
    assert calls[-2:] == [300.0, 300.0] and guard.broken == {}


class Disk:
    """A disk for `os.write` and for what is written to temporary files, full or not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        real, make = os.write, __import__("tempfile").mkstemp

        def write(fd: int, data: bytes) -> int:
            self.check()
            return real(fd, data)

        def mkstemp(*args: Any, **kwargs: Any) -> Any:
            self.check()
            return make(*args, **kwargs)

        monkeypatch.setattr("rldk.log.appender.os.write", write)
        monkeypatch.setattr("rldk.core.files.tempfile.mkstemp", mkstemp)
        from rldk.monitor.outputs.metrics_csv import MetricsCsv

        append = MetricsCsv._append
        monkeypatch.setattr(MetricsCsv, "_append", lambda table, line: (self.check(), append(table, line))[1])

    def check(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("from_start", [False, True])
def test_all_files_are_complete_after_a_full_disk(
    from_start: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(monkeypatch)
    alerts = tmp_path / "run_alerts.json"
    with caplog.at_level(logging.WARNING, "rldk"), Monitor(tmp_path, run_id="run", limits={"reward_mean": 5.0}) as monitor:
        disk.full = from_start
        for step in range(20):
            disk.full = disk.full or step == 3
            monitor.observe(Event(step, {"reward_mean": 9.0 if step == 6 else 1.0}))
            if step > 6:
                assert not alerts.exists(), "an empty list would say that nothing was found"
        told = [record.getMessage() for record in caplog.records]
        assert len([text for text in told if "No space left" in text]) == 1 + from_start, "the files, and the log"
        assert not any(record.exc_info for record in caplog.records)
        disk.full = False
        time.sleep(1.1)
        monitor.observe(Event(20, {"reward_mean": 1.0}))
    assert [event.step for event in EventReader(tmp_path / "run_events.jsonl")] == list(range(21))
    with (tmp_path / "run_metrics.csv").open(newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == list(range(21))
    assert [one["type"] for one in json.loads(alerts.read_text())] == ["user_limit_exceeded"]
    assert json.loads((tmp_path / "run_final_report.json").read_text())["events"] == 21
    assert json.loads((tmp_path / "run_config.json").read_text())["run_id"] == "run"


def test_a_folder_that_is_deleted_while_the_run_goes_on_comes_back(tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "out"
    with Monitor(folder, run_id="run", limits={"reward_mean": 5.0}) as monitor:
        for step in range(10):
            monitor.observe(Event(step, {"reward_mean": float(step)}))
            if step == 4:
                shutil.rmtree(folder)
    assert [event.step for event in EventReader(folder / "run_events.jsonl")] == list(range(5, 10))
    with (folder / "run_metrics.csv").open(newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == list(range(5, 10))
    assert json.loads((folder / "run_alerts.json").read_text()) and monitor.guard.broken == {}
