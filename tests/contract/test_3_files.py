"""Section 3 on a real PPO run: the files, what they hold, the shape of an event, and the names that are read for another."""

from __future__ import annotations

import json
from math import isfinite

import pytest

UPDATES = 12
HALF = UPDATES // 2
FILES = {
    "events.jsonl", "metrics.csv", "alerts.json", "final_report.json", "comprehensive_analysis.json", "health_summary.json",
    "comprehensive_metrics.csv", "comprehensive_metrics.json", f"comprehensive_analysis_step_{HALF}.json",
    f"comprehensive_analysis_step_{UPDATES}.json", "checkpoint_summary.csv", "config.json",
}  # fmt: skip
EXAMPLE = {
    "step": 10, "wall_time": 100.5,
    "metrics": {
        "reward_mean": 0.8, "reward_std": 0.2, "kl_mean": 0.05, "entropy_mean": 0.9, "clip_frac": 0.1, "grad_norm": 1.0,
        "lr": 0.001, "loss": 0.5,
    },
    "rng": {"seed": 42}, "data_slice": {"tokens_in": 1000, "tokens_out": 500},
    "model_info": {"run_id": "my_ppo_run", "git_sha": "abc123", "phase": "train"},
    "notes": ["High clipping fraction detected"],
}  # fmt: skip
ALIASES = {
    "kl": "kl_mean", "grad_norm_policy": "policy_grad_norm", "grad_norm_value": "value_grad_norm", "entropy": "entropy_mean",
    "learning_rate": "lr",
}  # fmt: skip

on_a_real_run = [pytest.mark.full, pytest.mark.filterwarnings("default")]


def real(test):
    for mark in on_a_real_run:
        test = mark(test)
    return test


@real
def test_the_files_of_the_contract_and_no_others(ppo_run) -> None:
    written = {path.name for path in ppo_run.folder.iterdir() if path.is_file()}
    assert written == {f"mine_{ending}" for ending in FILES} | {"own.jsonl"}


@real
def test_an_event_has_the_shape_of_the_contract(ppo_run) -> None:
    for event in ppo_run.events():
        assert set(EXAMPLE) - {"notes"} <= set(event)
        assert set(EXAMPLE["metrics"]) <= set(event["metrics"]) and all(map(isfinite, event["metrics"].values()))
        assert event["rng"] == {"seed": 0} and set(event["data_slice"]) == {"tokens_in", "tokens_out"}
        assert event["model_info"]["run_id"] == "mine" and event["model_info"]["phase"] == "train"
        assert isinstance(event["step"], int) and event["wall_time"] > 1e9


@real
def test_the_event_writer_writes_the_same_events(ppo_run) -> None:
    assert (ppo_run.folder / "own.jsonl").read_text() == ppo_run.path("events.jsonl").read_text()


@real
def test_the_metrics_are_one_row_per_step(ppo_run) -> None:
    rows, events = ppo_run.rows("metrics.csv"), ppo_run.events()
    assert [int(row["step"]) for row in rows] == [event["step"] for event in events]
    for row, event in zip(rows, events, strict=True):
        assert {name: float(row[name]) for name in event["metrics"]} == pytest.approx(event["metrics"])


@real
def test_the_final_report_has_summary_statistics_and_health(ppo_run) -> None:
    report = ppo_run.json("final_report.json")
    rewards = [event["metrics"]["reward_mean"] for event in ppo_run.events()]
    found = report["metrics"]["reward_mean"]
    assert found["count"] == UPDATES and found["mean"] == pytest.approx(sum(rewards) / UPDATES)
    assert (found["min"], found["max"]) == pytest.approx((min(rewards), max(rewards)))
    assert report["health"]["status"] in ("healthy", "degraded", "warning", "critical") and report["verdict"] == "warning"


@real
def test_all_files_tell_one_story(ppo_run) -> None:
    report, health = ppo_run.json("final_report.json"), ppo_run.json("health_summary.json")
    analysis, alerts = ppo_run.json("comprehensive_analysis.json"), ppo_run.json("alerts.json")
    assert report["health"] == health and (report["verdict"], report["status"]) == (health["verdict"], health["status"])
    assert analysis["overall_health_score"] == health["overall_health_score"] == report["scores"]["overall_health"]
    training = [one["type"] for one in alerts if one["type"] not in {found["type"] for found in report["machine"]}]
    assert training == [one["type"] for one in analysis["anomalies"]] == [one["type"] for one in report["anomalies"]]


@real
def test_the_analysis_at_a_checkpoint_is_that_of_its_step(ppo_run) -> None:
    for step in (HALF, UPDATES):
        assert ppo_run.json(f"comprehensive_analysis_step_{step}.json")["total_steps"] == step
    rows = ppo_run.rows("checkpoint_summary.csv")
    assert [int(row["step"]) for row in rows] == [HALF, UPDATES] and float(rows[1]["update_ratio"]) > 0.0


def test_the_example_of_the_contract_is_read_and_written_as_it_is(tmp_path) -> None:
    from rldk.ingest import ingest_runs
    from rldk.log import EventReader

    path = tmp_path / "my_events.jsonl"
    path.write_text("".join(json.dumps(EXAMPLE | {"step": step}) + "\n" for step in (10, 11, 12)))
    frame = ingest_runs(path)
    assert frame["step"].tolist() == [10, 11, 12] and frame["run_id"].unique().tolist() == ["my_ppo_run"]
    assert {name: frame[name].iloc[0] for name in EXAMPLE["metrics"]} == EXAMPLE["metrics"]
    event = next(iter(EventReader(path)))
    assert json.loads(json.dumps(event.to_dict())) == EXAMPLE


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_read_on_input(alias: str, tmp_path) -> None:
    from rldk.forensics import ComprehensivePPOForensics
    from rldk.ingest import ingest_runs

    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps({"step": n, "metrics": {alias: 0.5 + n, "reward_mean": 1.0}}) + "\n" for n in range(3)))
    assert ingest_runs(path)[ALIASES[alias]].tolist() == [0.5, 1.5, 2.5]
    assert ComprehensivePPOForensics().update(step=1, **{alias: 0.5}).metrics == {ALIASES[alias]: 0.5}
