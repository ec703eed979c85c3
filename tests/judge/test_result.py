"""Verdicts: the worst that was found, and never `healthy` where there was nothing to judge by."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.judge.config import ScanConfig
from rldk.judge.result import Result
from rldk.judge.scan import judge_run
from rldk.testing.streams import faulty, healthy


@pytest.fixture
def judge(tmp_path: Path) -> Any:
    """Judge a log of these events."""

    def judged(events: list[Event], config: ScanConfig | None = None) -> Result:
        path = tmp_path / "run_events.jsonl"
        path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
        (run,) = read_runs(path).runs
        return judge_run(run, config)

    return judged


def rows(count: int, **metrics: float) -> list[Event]:
    return [
        Event(step, {name: value * (1.0 + 0.05 * math.sin(step)) for name, value in metrics.items()}) for step in range(count)
    ]


@pytest.mark.parametrize(("count", "said"), [(1, "only 1 event: too few to judge"), (9, "only 9 events: too few to judge")])
def test_too_few_events_are_no_data(judge: Any, count: int, said: str) -> None:
    found = judge(rows(count, reward_mean=0.5, kl_mean=0.1))
    assert (found.verdict, found.reason) == ("no_data", said)
    assert found.scores == {} and found.score_parts == {}, "a health of 1 would say that it was judged"


def test_ten_events_are_enough(judge: Any) -> None:
    assert judge(rows(10, reward_mean=0.5)).verdict == "healthy"


def test_a_supervised_log_is_no_data(judge: Any) -> None:
    found = judge(rows(50, loss=0.5, grad_norm=1.0, lr=1e-5))
    assert found.verdict == "no_data"
    assert found.reason.startswith("no metric of reinforcement learning to judge by")
    assert found.run.kind == "supervised"


def test_metrics_that_nobody_knows_are_no_data(judge: Any) -> None:
    assert judge([Event(step, {"loss": 0.5, "my/own": 1.0}) for step in range(50)]).verdict == "no_data"


def test_a_reward_logged_four_times_is_no_data(judge: Any) -> None:
    events = rows(50, loss=0.5)
    for event in events[:4]:
        event.metrics["reward_mean"] = 0.5
    assert judge(events).verdict == "no_data"


def test_a_reward_that_is_never_a_number_is_not_healthy(judge: Any) -> None:
    events = [Event(step, {"loss": 0.5 + 0.01 * (step % 5), "reward_mean": math.nan}) for step in range(50)]
    assert judge(events).verdict in ("no_data", "critical")


def test_what_was_found_in_a_supervised_log_is_said(judge: Any) -> None:
    events = [Event(step, {"loss": math.nan if step > 20 else 0.5, "lr": 1e-5}) for step in range(50)]
    assert judge(events).verdict == "critical"


@pytest.mark.parametrize("profile", ["ppo", "ppo_token", "grpo", "dpo"])
def test_healthy(judge: Any, profile: str) -> None:
    found = judge(healthy(profile, 300, seed=0))
    assert (found.verdict, found.incidents, found.would_stop) == ("healthy", [], None)
    active = found.coverage.active
    assert found.reason == f"nothing found by {active} active checks"
    assert 0 < active < len(found.engine.detectors)


def test_warning(judge: Any) -> None:
    clip = [0.1] * 25 + [0.8] * 30
    found = judge([Event(step, {"clip_frac": value, "reward_mean": 0.5 + 0.01 * (step % 3)}) for step, value in enumerate(clip)])
    assert (found.verdict, found.reason, found.would_stop) == ("warning", "1 warning anomaly", None)


def test_critical(judge: Any) -> None:
    found = judge(faulty("entropy_explosion", seed=1, steps=250, onset=80))
    criticals = [anomaly for anomaly in found.engine.anomalies if anomaly.severity == "critical"]
    assert found.verdict == "critical"
    assert found.reason == f"{len(criticals)} critical anomalies"
    assert found.would_stop == {"step": criticals[0].step, "index": criticals[0].index}
    assert 80 <= criticals[0].index < 130


def test_a_warning_that_cleared_is_a_warning_still(judge: Any) -> None:
    clip = [0.1] * 20 + [0.8] * 20 + [0.1] * 40
    found = judge([Event(step, {"clip_frac": value, "reward_mean": 0.5 + 0.01 * (step % 3)}) for step, value in enumerate(clip)])
    (incident,) = found.incidents
    assert (found.verdict, found.state, found.status) == ("warning", "recovered", "warning")
    assert incident.recovered_step == found.anomalies[0].cleared_index is not None  # steps count from 0 as events do
    assert found.reason == f"1 warning anomaly, recovered at step {incident.recovered_step}"
    assert found.scores["overall_health"] > 0.7 >= found.worst_scores["overall_health"]


def test_the_judgement_as_others_read_it(judge: Any) -> None:
    result = judge(faulty("policy_collapse", seed=1, steps=300, onset=100))
    result.skipped_lines = 3
    found = result.to_dict()
    assert found["skipped_lines"] == 3
    assert (found["events"], found["first_step"], found["last_step"]) == (300, 1, 300)
    assert found["would_stop"]["index"] == min(a["index"] for a in found["anomalies"] if a["severity"] == "critical")
    for incident in found["incidents"]:
        assert all(0 <= number < len(found["anomalies"]) for number in incident["anomalies"])
    assert sorted(number for incident in found["incidents"] for number in incident["anomalies"]) == list(
        range(len(found["anomalies"]))
    )
    json.dumps(found)


def test_coverage_says_what_was_found_what_was_not_placed_and_who_could_not_judge(judge: Any) -> None:
    events = [Event(step, {"reward": 0.5 + 0.01 * (step % 3), "my/own": 1.0}) for step in range(30)]
    coverage = judge(events).to_dict()["coverage"]
    assert coverage["metrics"] == {"reward_mean": "reward"}
    assert coverage["unmapped"] == ["my/own"]
    inactive = {row["detector"]: row["missing"] for row in coverage["inactive"]}
    assert inactive["reward_saturation"] == ["reward_std"]
    assert "policy_collapse" not in inactive and "step_regression" not in inactive
    assert inactive["clip_saturation"] == ["clip_frac|clip_range"]


def test_a_detector_that_is_switched_off_is_not_called_inactive(judge: Any) -> None:
    found = judge(rows(30, reward_mean=0.5), ScanConfig(detectors={"clip_saturation": {"enabled": False}}))
    assert "clip_saturation" not in {row["detector"] for row in found.to_dict()["coverage"]["inactive"]}


def test_settings_reach_the_judge(judge: Any) -> None:
    events = rows(30, reward_mean=0.5, kl_mean=0.3)
    assert judge(events).verdict == "healthy"
    found = judge(events, ScanConfig(limits={"kl_mean": {"max": 0.2, "severity": "critical"}}))
    assert (found.verdict, found.would_stop) == ("critical", {"step": 0, "index": 0})


def test_scores_are_shares_and_those_without_evidence_are_left_out(judge: Any) -> None:
    scores = judge(healthy("ppo", 300, seed=0)).scores
    assert scores and all(0.0 <= score <= 1.0 for score in scores.values())
    assert judge(rows(50, loss=0.5)).scores.keys() < scores.keys()


@pytest.mark.parametrize("break_at", [None, 105])
def test_a_defect_that_returns_stands_again(break_at: int | None) -> None:
    """The loss is not finite for ten rows, recovers, and is not finite from row 100 to the end."""
    judge = ScanConfig().judge()
    for step, event in enumerate(healthy("ppo", 160, 2)):
        if 60 <= step < 70 or step >= 100:
            event.metrics["loss"] = math.nan
        if step == break_at:
            state = json.loads(json.dumps(judge.engine.state_dict()))
            judge = ScanConfig().judge()
            judge.engine.load_state_dict(state)
        judge.take(event)
        if step == 90:
            assert judge.result().state == "recovered"
    result = judge.result()
    assert result.state == "critical" and result.incidents[0].recovered_step is None
    assert result.scores["overall_health"] <= 0.3
