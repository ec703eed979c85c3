"""Section 6 on a real PPO run: what is promised beside the main tables, and easily overlooked."""

from __future__ import annotations

import csv
import json
from math import isfinite

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
UPDATES = 12


def test_an_event_carries_automatic_notes_when_a_detector_has_something_to_say(ppo_run) -> None:
    events = [json.loads(line) for line in ppo_run.path("events.jsonl").read_text().splitlines()]
    alerts = json.loads(ppo_run.path("alerts.json").read_text())
    noted = {event["step"]: event["notes"] for event in events if event.get("notes")}
    judged = [alert for alert in alerts if alert["tracker"] not in ("probe", "scores")]
    assert judged and all(alert["message"] in noted[alert["step"]] for alert in judged)


def test_trackers_and_scores_of_each_step_are_in_the_comprehensive_metrics(ppo_run) -> None:
    with ppo_run.path("comprehensive_metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = json.loads(ppo_run.path("comprehensive_metrics.json").read_text())
    assert [int(row["step"]) for row in rows] == [row["step"] for row in found] == list(range(1, UPDATES + 1))
    for row, record in zip(rows, found, strict=True):
        assert float(row["kl_schedule_current_kl"]) == record["kl_schedule_current_kl"] == record["metrics"]["kl_mean"]
        for prefix in ("gradient_norms_", "advantage_statistics_", "length_bias_"):
            assert any(name.startswith(prefix) for name in record)
    assert isfinite(float(rows[-1]["overall_health_score"]))


@pytest.mark.parametrize("name", ["PPOMonitor", "ComprehensivePPOMonitor", "EventWriterCallback"])
def test_callbacks_expose_current_metrics_and_their_history(ppo_run, name) -> None:
    callback = ppo_run.callbacks[name]
    assert len(callback.metrics_history) == UPDATES
    assert callback.current_metrics is callback.metrics_history[-1]


def test_ppo_monitor_measures_token_efficiency_and_risks(ppo_run) -> None:
    monitor = ppo_run.callbacks["PPOMonitor"]
    last = monitor.ppo_metrics
    assert last.reward_per_token == pytest.approx(last.reward_mean / last.rollout_length_mean)
    assert 0.0 <= last.collapse_risk <= 1.0 and 0.0 <= last.hacking_risk <= 1.0
    rollout = monitor.get_rollout_analysis()
    assert rollout["rewards"]["std"] == last.reward_std and rollout["reward_per_token"] == last.reward_per_token
    assert monitor.get_convergence_analysis()["course"] == "unknown"  # twelve points are too few
    changes = monitor.get_learning_rate_impact()  # TRL lowers the rate in a straight line
    assert changes and all(change["to"] < 0.81 * change["from"] and change["step"] > 3 for change in changes)
    json.dumps([rollout, changes], allow_nan=False)


def test_a_limit_of_the_user_alerts_and_a_scan_of_the_log_agrees(ppo_run, capsys) -> None:
    from rldk.cli.main import main

    live = {alert["type"] for alert in json.loads(ppo_run.path("alerts.json").read_text())}
    main(["scan", str(ppo_run.path("events.jsonl")), "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    scanned = {anomaly["type"] for anomaly in run["anomalies"]}
    assert any("limit" in kind for kind in live)
    assert scanned == live
