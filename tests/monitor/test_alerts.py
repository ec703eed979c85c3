"""An alert between two events is an anomaly: it reaches the verdict, every output, and a scan of the log."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.core.files import strict
from rldk.monitor import Command, Monitor
from rldk.monitor.outputs import EventLog
from rldk.testing.streams import faulty


def observe(monitor: Monitor, steps: range) -> None:
    for step in steps:
        monitor.observe(Event(step, {"reward_mean": 0.5 + 0.01 * (step % 3), "kl_mean": 0.1 + 0.001 * (step % 5)}))


def test_a_critical_alert_reaches_actions_files_verdict_and_the_decision_to_stop(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    program = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    action = Command([sys.executable, "-c", program, str(told)])
    with Monitor(tmp_path, run_id="run", actions=[action], stop_on="critical") as monitor:
        observe(monitor, range(1, 21))
        monitor.alert(21, "nonfinite_gradient", "The gradient is not finite.", advice="Skip the step.")
        assert monitor.stop is None
        observe(monitor, range(21, 22))
        assert monitor.stop is not None and monitor.stop.type == "nonfinite_gradient"
    assert json.loads(told.read_text())["anomalies"][0]["type"] == "nonfinite_gradient"
    (alert,) = json.loads((tmp_path / "run_alerts.json").read_text())
    assert (alert["type"], alert["index"], alert["alert"]) == (
        "nonfinite_gradient", 20, "critical at step 21: The gradient is not finite.",
    )  # fmt: skip
    report = json.loads((tmp_path / "run_final_report.json").read_text())
    assert (report["verdict"], report["state"], report["health"]["status"]) == ("critical",) * 3
    assert max(report["scores"]["overall_health"], report["scores"]["training_stability"]) <= 0.3


@pytest.mark.parametrize("late", [False, True])
def test_a_scan_of_the_log_finds_the_alert_and_when_it_was_over(late: bool, tmp_path: Path, scan: Any) -> None:
    """An alert after which nothing came, as in a crash, is in the log too."""
    with Monitor(tmp_path, run_id="run") as monitor:
        observe(monitor, range(1, 21))
        monitor.alert(21, "nonfinite_gradient", "The gradient is not finite.")
        if not late:
            monitor.alert(21, "nonfinite_gradient", "The gradient is not finite.")  # the same again is no second anomaly
            observe(monitor, range(21, 41))
    judged = scan(tmp_path / "run_events.jsonl")
    assert judged["anomalies"] == strict(monitor.result().to_dict())["anomalies"]
    (anomaly,), (incident,) = judged["anomalies"], judged["incidents"]
    assert (anomaly["index"], anomaly["cleared_index"]) == (20, None if late else 25)
    assert incident["recovered_step"] == (None if late else 26)
    assert judged["verdict"] == "critical" and judged["state"] == ("critical" if late else "recovered")
    assert judged["events"] == monitor.forensics.engine.events == (21 if late else 40)


def test_what_is_found_after_the_last_event_is_in_the_log(tmp_path: Path, scan: Any) -> None:
    """As an alert about a score, which is looked at after each event."""
    with Monitor(tmp_path, run_id="run") as monitor:
        observe(monitor, range(1, 20))
        monitor.alert(19, "policy_collapse_risk", "The risk of a collapse is high.", "warning", family="scores")
        monitor.observe(Event(20, {"reward_mean": 0.5, "kl_mean": 0.1}, notes=["a note of the training"]))
        monitor.alert(20, "low_training_stability", "The stability is low.", "warning", family="scores")
    judged = scan(tmp_path / "run_events.jsonl")
    assert judged["anomalies"] == strict(monitor.result().to_dict())["anomalies"]
    assert [(one["type"], one["step"], one["index"]) for one in judged["anomalies"]] == [
        ("policy_collapse_risk", 19, 18), ("low_training_stability", 20, 19),
    ]  # fmt: skip
    assert judged["events"] == monitor.forensics.engine.events == 20 and judged["verdict"] == "warning"
    last = json.loads((tmp_path / "run_events.jsonl").read_text().splitlines()[-1])
    assert (last["step"], last["notes"]) == (20, ["a note of the training", "The stability is low."])


def test_a_run_that_resumes_finds_what_came_after_its_last_event(tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run") as first:
        observe(first, range(1, 21))
        first.alert(20, "low_training_stability", "The stability is low.", "warning", family="scores")
    with Monitor(tmp_path, run_id="run", resume_step=20) as second:
        second.start()
        assert [one.to_dict() for one in second.anomalies] == [one.to_dict() for one in first.anomalies]
        assert second.forensics.engine.events == 20


def test_a_log_of_some_events_has_all_alerts(tmp_path: Path, scan: Any) -> None:
    log = EventLog(tmp_path / "log.jsonl", every=10)
    with Monitor(run_id="run", outputs=[log]) as monitor:
        observe(monitor, range(1, 14))
        monitor.alert(13, "low_training_stability", "The stability is low.", "warning", family="scores")
        observe(monitor, range(14, 16))
    assert [one["type"] for one in scan(tmp_path / "log.jsonl")["anomalies"]] == ["low_training_stability"]


def test_an_alert_that_lasts_does_not_pass(tmp_path: Path) -> None:
    with Monitor(run_id="run") as monitor:
        monitor.alert(1, "checkpoint_nonfinite", "A tensor is not finite.", lasting=True)
        observe(monitor, range(1, 60))
        assert monitor.result().state == "critical"


def test_a_saved_state_remembers_what_stands(tmp_path: Path) -> None:
    first, second = Monitor(run_id="run"), Monitor(run_id="run")
    observe(first, range(1, 11))
    first.alert(11, "nonfinite_gradient", "The gradient is not finite.")
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for monitor in (first, second):
        observe(monitor, range(11, 31))
        assert monitor.result().incidents[0].recovered_step == 16
        monitor.close()


def test_the_machine_is_listed_beside_the_verdict_and_changes_nothing(tmp_path: Path, scan: Any) -> None:
    rows = [
        Event(step, {"reward_mean": 0.3 + 0.002 * step, "kl_mean": 0.1, "tokens_per_second": 1000.0 if step < 60 else 90.0})
        for step in range(200)
    ]
    with Monitor(tmp_path, run_id="slow", stop_on="warning") as monitor:
        for event in rows:
            monitor.observe(event)
        assert monitor.stop is None and monitor.anomalies == []
    judged = scan(tmp_path / "slow_events.jsonl")
    assert {one["type"] for one in judged["machine"]} == {"throughput_drop"}
    assert (judged["verdict"], judged["anomalies"], judged["incidents"], judged["would_stop"]) == ("healthy", [], [], None)
    assert judged["scores"]["overall_health"] == 1.0
    assert "throughput_drop" in (tmp_path / "slow_alerts.json").read_text()
    config = tmp_path / "limits.yaml"
    config.write_text("limits:\n  tokens_per_second: {min: 500, severity: critical}\n")
    assert scan(tmp_path / "slow_events.jsonl", "--config", str(config))["verdict"] == "critical", "a user's limit counts"


def test_an_alert_has_the_last_good_step_of_its_incident(tmp_path: Path, scan: Any) -> None:
    with Monitor(tmp_path, run_id="run") as monitor:
        for event in faulty("entropy_explosion", "grpo", steps=250, onset=100, seed=1):
            monitor.observe(event)
    incidents = json.loads((tmp_path / "run_final_report.json").read_text())["incidents"]
    wanted = {number: incident["last_good_step"] for incident in incidents for number in incident["anomalies"]}
    own = {number: anomaly.last_good_step for number, anomaly in enumerate(monitor.anomalies)}
    assert wanted.keys() == own.keys() and wanted != own, "some are later by themselves"
    alerts = json.loads((tmp_path / "run_alerts.json").read_text())
    reported = json.loads((tmp_path / "run_final_report.json").read_text())["anomalies"]
    for found in (alerts, reported, scan(tmp_path / "run_events.jsonl")["anomalies"]):
        assert {number: one["last_good_step"] for number, one in enumerate(found)} == wanted
