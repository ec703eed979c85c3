"""A scan of a log holds to the limits that the live run was told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rldk
from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.judge.config import ScanConfig
from rldk.judge.scan import judge_run
from rldk.log import EventWriter


def written(path: Path, told: dict[str, object]) -> Path:
    with EventWriter(path) as log:
        for step in range(1, 31):
            info = {"config": {"learning_rate": 1e-5, "rldk": told}} if step == 1 else {}
            log.write(Event(step, {"reward_mean": 0.1 * (step % 3), "kl_mean": 0.02 * step}, model_info=info))
    return path


def raised(path: Path, config: ScanConfig | None = None) -> list[str]:
    return [one.type for one in judge_run(read_runs([path]).runs[0], config).anomalies]


def test_limits_in_the_log_are_applied(tmp_path: Path) -> None:
    told = {"limits": {"kl_mean": {"max": 0.4}}}
    assert raised(written(tmp_path / "run_events.jsonl", told)) == ["user_limit_exceeded"]
    assert raised(written(tmp_path / "free_events.jsonl", {})) == []


def test_limits_of_the_scan_come_first(tmp_path: Path) -> None:
    path = written(tmp_path / "run_events.jsonl", {"limits": {"kl_mean": {"max": 0.4}}})
    assert raised(path, ScanConfig(limits={"kl_mean": {"max": 2.0}})) == []


def test_limits_that_make_no_sense_are_a_note(tmp_path: Path) -> None:
    path = written(tmp_path / "run_events.jsonl", {"limits": {"no_such_metric_at_all": {"max": 0.4}}})
    result = judge_run(read_runs([path]).runs[0])
    assert result.anomalies == [] and any("cannot be used" in note for note in result.notes)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"arguments": "GRPOConfig", "max_steps": 85}, ["the log ends at step 49 of 85"]),
        ({"arguments": "GRPOConfig", "max_steps": 49}, []),
        ({"arguments": "PPOConfig", "max_steps": -1}, []),
        ({"max_steps": 10_000}, []),  # of another trainer, whose steps may be samples
    ],
)
def test_a_log_that_ends_before_its_last_step_says_so(tmp_path: Path, config: dict[str, Any], said: list[str]) -> None:
    rows: list[dict[str, Any]] = [{"step": step, "metrics": {"reward_mean": 0.01 * step}} for step in range(50)]
    rows[0]["model_info"] = {"config": config}
    (tmp_path / "r_events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (result,) = rldk.scan(tmp_path / "r_events.jsonl").results
    assert [note.partition(":")[0] for note in result.notes if "the log ends" in note] == said
