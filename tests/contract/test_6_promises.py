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


def test_a_checkpoint_shows_drift_gradient_flow_and_memory_with_suggestions(ppo_run) -> None:
    monitor = ppo_run.callbacks["CheckpointMonitor"]
    record, flow, memory = monitor.checkpoint_metrics, monitor.get_gradient_flow(), monitor.get_memory_analysis()
    assert record.step == UPDATES and record.update_ratio > 0.0 and 0.0 <= record.health_score <= 1.0
    assert record.norm_change == pytest.approx(record.norm_change_from_start)  # the second is compared with the first
    assert {"policy.model.layers.0", "policy.model.layers.1"} <= set(flow["layers"])
    assert flow["layers"][record.weakest_gradient_layer] == record.weakest_gradient_norm > 0.0
    assert record.training_memory_gb == pytest.approx(sum(memory["memory_gb"].values())) and memory["suggestions"]
    rows = ppo_run.rows("checkpoint_summary.csv")
    assert [row["strongest_gradient_layer"] for row in rows][-1] == record.strongest_gradient_layer and rows[0]["memory_advice"]


@pytest.mark.parametrize(("defect", "kind"), [("unsteady", "low_training_stability"), ("collapsing", "policy_collapse_risk")])
def test_low_stability_and_a_risk_of_collapse_alert_without_being_configured(defect: str, kind: str) -> None:
    from rldk.integrations.trl.score_alerts import ScoreAlerts
    from rldk.monitor import Monitor

    monitor, alerts = Monitor(), ScoreAlerts({}, {})
    for step in range(120):
        row = {"reward_mean": 0.5 + 0.004 * min(step, 60), "entropy_mean": 2.0, "kl_mean": 0.02, "grad_norm": 1.0}
        if step > 60 and defect == "collapsing":
            fallen = min(1.0, (step - 60) / 20)
            row |= {"reward_mean": 0.74 - 0.8 * fallen, "entropy_mean": 2.0 - 1.95 * fallen}
        if step > 60 and defect == "unsteady":
            row |= {"grad_norm": 10.0 ** (1 + step % 5), "kl_mean": 0.02 + 40.0 * (step % 2)}
        monitor.observe({"step": step, "metrics": row})
        alerts.look(monitor, step)
        assert step > 60 or not monitor.anomalies
    (found,) = [one for one in monitor.anomalies if one.type == kind]
    assert found.severity == "warning" and "default limit" in found.message and found.advice
    monitor.close()
