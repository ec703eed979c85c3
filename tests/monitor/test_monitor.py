"""The monitor: it never raises, writes before it judges, decides to stop, and goes on after a break."""

from __future__ import annotations

import csv
import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.jsonio import dumps, loads
from rldk.log import EventReader
from rldk.monitor import Monitor, Output
from rldk.monitor.outputs import EventLog, MetricsCsv
from rldk.monitor.run_files import check_run_id
from rldk.testing.streams import faulty, healthy


class Broken(Output):
    """Fails wherever it is told to."""

    def __init__(self, where: str) -> None:
        self.where, self.calls = where, 0

    def _fail(self, here: str) -> None:
        if here == self.where:
            self.calls += 1
            raise RuntimeError("made to fail")

    def start(self, monitor: Monitor) -> None:
        self._fail("start")

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._fail("take")

    def save(self, step: int) -> None:
        self._fail("save")

    def close(self) -> None:
        self._fail("close")


@pytest.mark.parametrize("where", ["start", "take", "save", "close"])
def test_a_failing_output_is_reported_once_and_costs_nothing_else(
    where: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = Broken(where)
    with caplog.at_level(logging.WARNING, "rldk"), Monitor(event_log_path=tmp_path / "e.jsonl", outputs=[output]) as monitor:
        for step in range(5):
            monitor.observe(Event(step, {"reward_mean": 1.0}))
            monitor.saved(step)
    assert output.calls == (1 if where == "close" else 3), "disabled after three failures in a row"
    assert len(caplog.records) == 1 and caplog.records[0].exc_info is not None
    assert [event.step for event in EventReader(tmp_path / "e.jsonl")] == [0, 1, 2, 3, 4]
    assert list(monitor.guard.broken) == ["output"]


class Held(Output):
    """Holds something that must be let go; `where` is where it fails."""

    def __init__(self, name: str, where: str = "") -> None:
        self.label, self.where, self.closed = name, where, 0

    @property
    def key(self) -> str:
        return self.label

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        if self.where == "take":
            raise RuntimeError(f"{self.label} cannot take")

    def close(self) -> None:
        self.closed += 1
        if self.where == "close":
            raise RuntimeError(f"{self.label} cannot close")


def test_every_output_is_closed_once_even_if_it_or_another_has_failed() -> None:
    outputs = [Held("a", "take"), Held("b", "close"), Held("c")]
    monitor = Monitor(outputs=outputs)
    monitor.observe(Event(0, {"reward_mean": 1.0}))
    monitor.close()
    monitor.close()
    assert [output.closed for output in outputs] == [1, 1, 1] and list(monitor.guard.broken) == ["a", "b"]


def test_strict_closes_every_output_and_then_raises_what_failed_first() -> None:
    outputs = [Held("a", "close"), Held("b", "close"), Held("c")]
    monitor = Monitor(outputs=outputs, strict=True)
    monitor.observe(Event(0, {"reward_mean": 1.0}))
    with pytest.raises(RuntimeError, match="a cannot close"):
        monitor.close()
    assert [output.closed for output in outputs] == [1, 1, 1]


def test_the_files_of_an_output_that_failed_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("made to fail")

    monkeypatch.setattr(MetricsCsv, "take", broken)
    monitor = Monitor(tmp_path, run_id="run")
    monitor.observe(Event(0, {"reward_mean": 1.0}))
    (table,) = [output for output in monitor.outputs if isinstance(output, MetricsCsv)]
    file = table._file
    assert file is not None and not file.closed
    monitor.close()
    assert file.closed


def test_strict_raises_again() -> None:
    with pytest.raises(RuntimeError, match="made to fail"):
        Monitor(outputs=[Broken("take")], strict=True).observe(Event(0, {"reward_mean": 1.0}))


@pytest.mark.parametrize("odd", [{"step": "x"}, {"no": 1}, 7, {"step": 1, "metrics": 3}])
def test_an_event_that_cannot_be_read_is_no_reason_to_read_no_more(odd: Any, caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor()
    monitor.observe(odd)
    monitor.observe(Event(5, {"reward_mean": 1.0}))
    assert monitor.forensics.engine.last_step == 5


def test_the_event_is_on_disk_with_its_notes_before_it_is_shown(tmp_path: Path) -> None:
    seen: list[tuple[int, list[str]]] = []

    class Look(Output):
        name = "look"

        def take(self, event: Event, raised: list[Anomaly]) -> None:
            lines = (tmp_path / "run_events.jsonl").read_text().splitlines()
            seen.append((len(lines), json.loads(lines[-1]).get("notes", [])))

    outputs = [EventLog(tmp_path / "run_events.jsonl"), Look()]
    with Monitor(tmp_path, run_id="run", limits={"reward_mean": 1.5}, outputs=outputs, strict=True) as monitor:
        for step in range(3):
            monitor.observe(Event(step, {"reward_mean": 1.0 + step}))
    assert [lines for lines, _ in seen] == [1, 2, 3]
    assert seen[0][1] == [] and "above your limit" in seen[1][1][0]


def test_an_event_whose_judging_fails_is_logged_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Monitor(tmp_path, run_id="run") as monitor:
        monkeypatch.setattr(monitor.forensics.engine, "observe", lambda event: 1 / 0)
        monitor.observe(Event(1, {"reward_mean": 1.0}))
        assert len((tmp_path / "run_events.jsonl").read_bytes().splitlines()) == 1


def test_files_are_complete_after_close(tmp_path: Path) -> None:
    events = faulty("kl_explosion", steps=150, onset=60, seed=1)
    with Monitor(tmp_path, run_id="run") as monitor:
        for event in events:
            monitor.observe(event)
    monitor.close()
    assert monitor.observe(events[0]) == []
    report = json.loads((tmp_path / "run_final_report.json").read_text())
    assert report["events"] == 150 and report["verdict"] == "critical" and report["coverage"]["failed"] == {}
    assert report["metrics"]["kl_mean"]["count"] == 150
    alerts = json.loads((tmp_path / "run_alerts.json").read_text())
    assert [(one["type"], one["index"]) for one in alerts] == [(one.type, one.index) for one in monitor.anomalies]
    with (tmp_path / "run_metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["kl_mean"]) for row in rows] == [event.metrics["kl_mean"] for event in events]


@pytest.mark.parametrize("confirm", [0, 5])
def test_the_stop_is_where_the_first_critical_stands(confirm: int) -> None:
    monitor = Monitor(stop_on="critical", confirm=confirm)
    for event in faulty("kl_explosion", steps=200, onset=60, seed=1):
        monitor.observe(event)
        if monitor.stop:
            break
    first = next(one for one in monitor.anomalies if one.severity == "critical")
    assert monitor.stop is not None and monitor.stop.index == first.index + confirm
    assert monitor.stop.incident["cause"] and monitor.stop.incident["advice"]


def test_a_warning_stops_only_whoever_asked_for_it() -> None:
    limits = {"reward_mean": {"max": 1.0}}
    strict, lax = Monitor(stop_on="warning", limits=limits), Monitor(stop_on="critical", limits=limits)
    for monitor in (strict, lax):
        monitor.observe(Event(0, {"reward_mean": 2.0}))
    assert strict.stop is not None and strict.stop.type == "user_limit_exceeded" and lax.stop is None


def test_a_condition_that_passes_before_it_is_confirmed_stops_nothing() -> None:
    monitor = Monitor(stop_on="warning", confirm=2, limits={"reward_mean": 1.0})
    for step, reward in enumerate([2.0, 2.0, 0.5, 2.0, 2.0, 0.5]):
        monitor.observe(Event(step, {"reward_mean": reward}))
    assert monitor.stop is None
    for step in (6, 7, 8):
        monitor.observe(Event(step, {"reward_mean": 2.0}))
    assert monitor.stop is not None and monitor.stop.step == 8


def test_a_dry_run_only_records(tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run", stop_on="warning", dry_run=True, limits={"reward_mean": 1.0}) as monitor:
        monitor.observe(Event(0, {"reward_mean": 2.0}))
    assert monitor.stop is None and monitor.would_stop is not None
    assert json.loads((tmp_path / "run_final_report.json").read_text())["stop"]["dry_run"] is True


def test_a_saved_state_goes_on_as_if_there_had_been_no_break() -> None:
    events = faulty("kl_explosion", steps=300, onset=130, seed=4)
    whole, first, second = (Monitor(stop_on="critical") for _ in range(3))
    for event in events:
        whole.observe(event)
    for event in events[:140]:
        first.observe(event)
    second.load_state_dict(loads(dumps(first.state_dict())))
    for event in events[140:]:
        second.observe(event)
    assert [one.to_dict() for one in second.anomalies] == [one.to_dict() for one in whole.anomalies]
    assert second.stop is not None and whole.stop is not None and second.stop.index == whole.stop.index
    with pytest.raises(UsageError, match="version"):
        second.load_state_dict({"version": 9})


def test_a_resumed_run_is_judged_from_its_beginning_and_repeats_nothing(tmp_path: Path) -> None:
    events = faulty("dead_reward", steps=200, onset=60, seed=2)
    with Monitor(tmp_path, run_id="run") as broken_off:
        for event in events[:130]:
            broken_off.observe(event)
    with Monitor(tmp_path, run_id="run", resume_step=events[99].step) as resumed:
        for event in events[100:]:
            resumed.observe(event)
    whole = Monitor()
    for event in events:
        whole.observe(event)
    assert [one.to_dict() for one in resumed.anomalies] == [one.to_dict() for one in whole.anomalies]
    assert [event.step for event in EventReader(tmp_path / "run_events.jsonl")] == [event.step for event in events]
    with (tmp_path / "run_metrics.csv").open(newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [event.step for event in events]


@pytest.mark.parametrize("bad", ["../up", "a/b", "a\\b", "", ".hidden", "a\nb", "x" * 200, "-flag"])
def test_a_run_id_may_not_leave_its_folder(bad: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run_id"):
        Monitor(tmp_path, run_id=bad)
    assert check_run_id("my_run-1.2") == "my_run-1.2"


def test_other_processes_write_and_judge_nothing(tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run", main_process=False) as monitor:
        assert monitor.observe(Event(0, {"loss": math.nan})) == []
        monitor.alert(0, "nonfinite_gradient", "x")
    assert list(tmp_path.iterdir()) == [] and monitor.forensics.engine.events == 0


def test_switches_and_settings_reach_the_detectors() -> None:
    monitor = Monitor(
        forensics={"enable_kl_schedule_tracking": False}, config={"detectors": {"plateau": False}}, limits={"kl": 1.0}
    )
    types = {detector.type for detector in monitor.forensics.engine.detectors}
    assert "kl_explosion" not in types and "plateau" not in types and {"entropy_collapse", "user_limit_exceeded"} <= types


def test_a_locked_log_is_no_reason_to_stop_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = Monitor(tmp_path, run_id="run")
    first.observe(Event(0, {"reward_mean": 1.0}))
    with caplog.at_level(logging.ERROR, "rldk"), Monitor(event_log_path=tmp_path / "run_events.jsonl") as second:
        for event in healthy("ppo", steps=30, seed=0):
            second.observe(event)
    assert second.forensics.engine.events == 30 and "another writer" in caplog.text
    first.close()


def test_the_record_is_made_once_per_event_and_anew_after_an_alert() -> None:
    with Monitor(run_id="run") as monitor:
        monitor.observe(Event(1, {"kl_mean": 0.1}))
        first = monitor.record()
        assert monitor.record() is first
        monitor.alert(1, "own", "Something else is wrong.", "critical")
        assert monitor.record() is not first and not monitor.record().overall_health_score > 0.3
        monitor.observe(Event(2, {"kl_mean": 0.2}))
        assert monitor.record().step == 2
