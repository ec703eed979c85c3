"""What a live run was started with, in its first event and in a file, so that a scan of the log judges as the run did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.judge.config import ScanConfig
from rldk.monitor import Monitor


def watch(folder: Path, steps: int = 3, **options: Any) -> list[dict[str, Any]]:
    with Monitor(folder, run_id="run", strict=True, **options) as monitor:
        for step in range(1, steps + 1):
            info = {"reductions": {"kl_mean": "sequence"}}
            monitor.observe(Event(step, {"kl_mean": 0.1 * step, "reward_mean": 1.0}, model_info=info))
    return [json.loads(line) for line in (folder / "run_events.jsonl").read_text().splitlines()]


def test_the_first_event_and_a_file_hold_settings_and_limits(tmp_path: Path) -> None:
    first, *rest = watch(
        tmp_path, run_config={"learning_rate": 1e-5, "api_key": "x"}, limits={"kl_mean": 0.15}, forensics={"kl_target": 6.0}
    )
    told = {"limits": {"kl_mean": {"max": 0.15}}, "kl_target": 6.0, "per": {"kl_mean": "sequence"}}
    assert first["model_info"]["config"] == {"learning_rate": 1e-5, "rldk": told}
    assert not any("config" in event["model_info"] for event in rest)
    written = json.loads((tmp_path / "run_config.json").read_text())
    assert written == {"run_id": "run", "knobs": {"learning_rate": 1e-5}, "raw": {"learning_rate": 1e-5}, "rldk": told}


def test_a_scan_finds_the_limits_of_the_live_run_in_its_log(tmp_path: Path) -> None:
    config = {"detectors": {"plateau": {"enabled": False}}, "limits": {"reward_mean": {"min": 0.5, "severity": "critical"}}}
    watch(tmp_path, config=config, limits={"kl_mean": {"max": 0.15}}, forensics={"kl_target": 6.0, "window_size": 50})
    (run,) = read_runs(tmp_path).runs
    assert run.config.scan_settings() == {
        "limits": {"reward_mean": {"min": 0.5, "severity": "critical"}, "kl_mean": {"max": 0.15}},
        "detectors": {"plateau": {"enabled": False}}, "kl_target": 6.0,
    }  # fmt: skip
    found = ScanConfig.from_dict(run.config.scan_settings())
    assert found.limits["kl_mean"] == {"max": 0.15} and found.kl_target == 6.0
    assert run.config.rldk["options"] == {"window_size": 50}


def test_where_nothing_was_told_nothing_is_written(tmp_path: Path) -> None:
    assert not any("config" in event["model_info"] for event in watch(tmp_path))
    assert not (tmp_path / "run_config.json").exists()


def test_an_event_that_brings_settings_of_its_own_keeps_them(tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run", run_config={"beta": 0.1, "lr": 1.0}) as monitor:
        monitor.observe(Event(1, {"loss": 1.0}, model_info={"config": {"beta": 0.2}}))
        monitor.observe(Event(2, {"loss": 1.0}))
    (run,) = read_runs(tmp_path / "run_events.jsonl").runs
    assert dict(run.config) == {"learning_rate": 1.0, "kl_coef": 0.2}


def test_a_run_that_is_resumed_says_it_again(tmp_path: Path) -> None:
    watch(tmp_path, run_config={"beta": 0.1})
    with Monitor(tmp_path, run_id="run", run_config={"beta": 0.3}, resume_step=3) as monitor:
        monitor.observe(Event(4, {"kl_mean": 0.1, "reward_mean": 1.0}))
    (run,) = read_runs(tmp_path / "run_events.jsonl").runs
    assert len(run) == 4 and run.config["kl_coef"] == 0.3
