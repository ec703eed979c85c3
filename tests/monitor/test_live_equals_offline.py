"""The anomalies of a monitor are those that a scan of the log it wrote finds: same type, step, index, severity, numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rldk
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.monitor import Monitor
from rldk.testing.streams import FAULTS, faulty, healthy


def found(monitor: Monitor) -> list[dict[str, Any]]:
    return strict(monitor.result().to_dict())["anomalies"]


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - {"step_regression"}))  # a scan reads steps that go back as two runs
def test_each_fault(name: str, tmp_path: Path, scan: Any) -> None:
    with Monitor(tmp_path, run_id="sick") as monitor:
        for event in faulty(name, steps=240, onset=120, seed=3):
            monitor.observe(event)
    judged = scan(tmp_path / "sick_events.jsonl")
    assert judged["anomalies"] == found(monitor)
    assert judged["events"] == monitor.forensics.engine.events
    assert judged["verdict"] == monitor.summary()["verdict"]
    assert judged["scores"] == monitor.summary()["scores"]


def test_a_healthy_run_with_responses(tmp_path: Path, scan: Any) -> None:
    """Responses are measured and not written: the log holds the correlation, which the scan then has."""
    with Monitor(tmp_path, run_id="bias") as monitor:
        for event in healthy("ppo", steps=100, seed=1):
            del event.metrics["length_reward_corr"]
            records = [{"length": 10 + 3 * one + event.step % 5, "reward": float(one)} for one in range(16)]
            monitor.observe(Event(event.step, event.metrics, extra={"response_data": records, "kept": 1}))
    assert any(anomaly.type == "length_bias" for anomaly in monitor.anomalies)
    assert scan(tmp_path / "bias_events.jsonl")["anomalies"] == found(monitor)
    first = Event.from_json((tmp_path / "bias_events.jsonl").read_bytes().splitlines()[0])
    assert "response_data" not in first.extra and first.extra["kept"] == 1


def test_events_of_one_step_are_one(tmp_path: Path, scan: Any) -> None:
    """A trainer logs its evaluation beside the training of the same step; a scan reads both as one row."""
    with Monitor(tmp_path, run_id="evals") as monitor:
        for event in faulty("reward_hacking", steps=500, seed=2):
            held_out = {name: event.metrics.pop(name) for name in list(event.metrics) if name.startswith("eval_")}
            monitor.observe(event)
            if event.step % 10 == 0:
                monitor.observe(Event(event.step, {"eval_loss": 0.5, **held_out}, model_info={"phase": "eval"}))
    judged = scan(tmp_path / "evals_events.jsonl")
    assert [one["index"] for one in judged["anomalies"]] == [one["index"] for one in found(monitor)]
    assert judged["anomalies"] == found(monitor)


def in_calls(event: Event, calls: int) -> list[Event]:
    """A step as a loop logs it that has several places which log."""
    names = sorted(event.metrics)
    parts = [{name: event.metrics[name] for name in names[part::calls]} for part in range(calls)]
    return [Event(event.step, part, event.wall_time, model_info=dict(event.model_info)) for part in parts if part]


@pytest.mark.parametrize("name", ["dead_reward", "entropy_collapse", "kl_explosion", "length_runaway", "preference_degenerate"])
@pytest.mark.parametrize("calls", [2, 100])
def test_steps_that_are_logged_in_several_calls(name: str, calls: int, tmp_path: Path, scan: Any) -> None:
    """However many calls a step takes, the detectors see it once: what they wait for is counted in steps."""
    events = faulty(name, steps=240, onset=120, seed=3)
    with Monitor(tmp_path / "whole", run_id="run") as whole:
        for event in events:
            whole.observe(event)
    with Monitor(tmp_path, run_id="parts") as monitor:
        for event in events:
            for part in in_calls(event, calls):
                monitor.observe(part)
        assert monitor.forensics.engine.events == len(events) - 1  # the last step may go on
        monitor.flush()
        assert monitor.forensics.engine.events == len(events)
    assert found(monitor) == found(whole)
    judged = scan(tmp_path / "parts_events.jsonl")
    assert judged["anomalies"] == found(monitor)
    assert judged["events"] == len(events)
    rows = (tmp_path / "parts_metrics.csv").read_text().splitlines()
    assert len(rows) <= len(events) + calls + 1  # a row for each step, but for the first


def test_a_value_that_is_logged_twice_counts_once(tmp_path: Path, scan: Any) -> None:
    """Of the passes over one batch, which log one step, the last one stands, as in a scan."""
    with Monitor(tmp_path, run_id="passes") as monitor:
        for step in range(60):
            for loss in (900.0 if step > 1 else 0.5, 0.5):
                monitor.observe({"step": step, "loss": loss, "reward_mean": 0.01 * step})
    assert found(monitor) == scan(tmp_path / "passes_events.jsonl")["anomalies"] == []


def test_an_alert_in_the_middle_of_a_step(tmp_path: Path, scan: Any) -> None:
    """What waits of a step is judged before an alert is raised, so that both are found in that order."""
    with Monitor(tmp_path, run_id="alerts") as monitor:
        for event in healthy("grpo", steps=60, seed=1):
            first, second = in_calls(event, 2)
            monitor.observe(first)
            if event.step == 40:
                monitor.alert(event.step, "nonfinite_gradient", "a gradient is not finite")
            monitor.observe(second)
    judged = scan(tmp_path / "alerts_events.jsonl")
    assert judged["anomalies"] == found(monitor)
    assert [one["step"] for one in judged["anomalies"] if one["type"] == "nonfinite_gradient"] == [40]


def test_a_run_in_several_calls_goes_on_after_a_break(tmp_path: Path) -> None:
    """From a saved state, or from the log alone, it ends as if there had been no break."""
    parts = [part for event in faulty("kl_explosion", steps=200, onset=100, seed=3) for part in in_calls(event, 2)]

    def ends(folder: Path, how: str) -> list[dict[str, Any]]:
        first = Monitor(folder, run_id="run")
        for part in parts[:240]:
            first.observe(part)
        state = first.state_dict()
        if how != "no break":
            first.close()
            first = Monitor(folder, run_id="run", resume_step=parts[239].step)
            if how == "state":
                first.load_state_dict(state)
        with first:
            for part in parts[240:]:
                first.observe(part)
        return found(first)

    assert ends(tmp_path / "a", "no break") == ends(tmp_path / "b", "state") == ends(tmp_path / "c", "log") != []


def test_keys_of_a_framework_and_their_units(tmp_path: Path, scan: Any) -> None:
    """TRL's KL is summed over a response: the log says so, or the scan would take it for one by token."""
    rows = [
        {"step": step, "objective/kl": 4.0 + 0.01 * step, "objective/scores": 0.1, "val/ratio": 1.0, "eps": 3, "episode": step}
        for step in range(60)
    ]
    with Monitor(tmp_path, run_id="units", framework="trl_ppo") as monitor:
        for row in rows:
            monitor.observe(row)
    assert monitor.forensics.engine.reductions == {"kl_mean": "sequence"}
    judged = scan(tmp_path / "units_events.jsonl")
    assert judged["coverage"]["reductions"]["kl_mean"] == "sequence"
    assert judged["anomalies"] == found(monitor)


def test_what_is_null_or_not_finite(tmp_path: Path, scan: Any) -> None:
    with Monitor(tmp_path, run_id="nulls") as monitor:
        for step in range(40):
            row: dict[str, Any] = {"reward_mean": None if step > 20 else 0.5, "loss": float("nan") if step > 30 else 0.1}
            monitor.observe({"step": step, "metrics": row})
    assert {"dead_reward", "nonfinite_metric"} <= {anomaly.type for anomaly in monitor.anomalies}
    assert scan(tmp_path / "nulls_events.jsonl")["anomalies"] == found(monitor)


def test_limits_are_the_same_in_a_config(tmp_path: Path, scan: Any) -> None:
    limits = {"kl_mean": 0.05, "reward_mean": {"min": 0.0, "severity": "critical"}}
    with Monitor(tmp_path, run_id="limits", limits=limits) as monitor:
        for step in range(30):
            monitor.observe(Event(step, {"kl_mean": 0.04 + 0.02 * (step % 2), "reward_mean": 1.0 if step < 25 else -1.0}))
    config = tmp_path / "limits.yaml"
    config.write_text("limits:\n  kl_mean: {max: 0.05}\n  reward_mean: {min: 0.0, severity: critical}\n")
    judged = scan(tmp_path / "limits_events.jsonl", "--config", str(config))
    assert judged["anomalies"] == found(monitor)
    crossed = [(one["step"], one["severity"]) for one in judged["anomalies"] if one["type"] == "user_limit_exceeded"]
    assert crossed[:3] == [(1, "warning"), (3, "warning"), (5, "warning")] and (25, "critical") in crossed


def test_a_kl_whose_unit_nobody_says(tmp_path: Path, scan: Any) -> None:
    """It rises far while the reward rises: what is assumed about its unit is the same while the run is going on."""
    with Monitor(tmp_path, run_id="own") as monitor:
        for step in range(150):
            kl = 0.01 if step < 60 else min(8.0, 0.01 * 1.12 ** (step - 60))
            monitor.observe(Event(step, {"kl_mean": kl, "reward_mean": 0.3 + 0.003 * step + 0.01 * (step % 3)}))
    judged = scan(tmp_path / "own_events.jsonl")
    assert judged["anomalies"] == found(monitor) == []
    said = [note.clause for note in monitor.forensics.engine.notes]
    assert "unit_unknown" in said


def test_keys_of_a_framework_are_recognised_as_in_a_log(tmp_path) -> None:
    """With the framework comes the unit of the KL, by which it is judged."""
    rows = [
        {"loss": 0.01, "grad_norm": 0.3, "reward": 0.3 + 0.001 * n, "reward_std": 0.4, "kl": 0.02 + 0.06 * n, "entropy": 0.6,
         "frac_reward_zero_std": 0.1, "completions/mean_length": 100.0 + n % 7, "completions/clipped_ratio": 0.0}
        for n in range(120)
    ]  # fmt: skip
    run = rldk.start("live", None, quiet=True)
    for step, row in enumerate(rows):
        run.log(step, row)
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"step": step, **row}) + "\n" for step, row in enumerate(rows)))
    (scanned,) = rldk.scan(path)
    live = run.result()
    assert [(one.type, one.index) for one in live.anomalies] == [(one.type, one.index) for one in scanned.anomalies] != []
    assert live.verdict == scanned.verdict == "critical"
