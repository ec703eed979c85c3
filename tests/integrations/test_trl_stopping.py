"""A stop keeps a checkpoint and complete files: by an exception of its own in PPO, by the trainer's own flag elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def test_ppo_stops_with_a_checkpoint_and_complete_files(tmp_path: Path) -> None:
    import trl_faults

    from rldk.monitor import TrainingStopped

    found = trl_faults.run("ppo", "nan_reward", tmp_path, updates=12, stop_on="critical", skip_nonfinite_steps=True)
    assert isinstance(found.error, TrainingStopped)
    stop = found.error.decision
    assert (stop.step, stop.type, stop.severity) == (7, "nonfinite_gradient", "critical")
    folder = tmp_path / "training" / "checkpoint-7"
    assert found.error.checkpoint == str(folder) and (folder / "model.safetensors").exists()
    assert "What to do" in str(found.error) and str(folder) in str(found.error)
    report = json.loads((found.folder / "run_final_report.json").read_text())
    assert report["stop"]["step"] == 7 and report["last_step"] == 7 and report["verdict"] == "critical"
    assert "checkpoint-7" in (found.folder / "run_checkpoint_summary.csv").read_text()
    assert not found.trainer.optimizer.optimizer._optimizer_step_pre_hooks


def test_a_dry_run_records_and_goes_on(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run(
        "ppo", "nan_reward", tmp_path, updates=8, stop_on="critical", dry_run=True, skip_nonfinite_steps=True
    )  # fmt: skip
    assert found.error is None and found.callback.stop is None
    assert found.callback.monitor is not None and found.callback.monitor.would_stop is not None
    report = json.loads((found.folder / "run_final_report.json").read_text())
    assert report["stop"]["dry_run"] is True and report["stop"]["step"] == 5 and report["last_step"] == 8


def test_grpo_stops_by_its_own_flag_with_a_checkpoint(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run("grpo", "nan_reward", tmp_path, updates=30, stop_on="critical")
    assert found.error is None
    stopped = found.trainer.state.global_step
    assert found.callback.stop is not None and found.callback.stop.step == stopped < 30
    assert (tmp_path / "training" / f"checkpoint-{stopped}" / "model.safetensors").exists()
    assert json.loads((found.folder / "run_final_report.json").read_text())["stop"]["type"] == "missing_reward"


def test_a_confirmation_waits_and_then_stops(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run("grpo", "nan_reward", tmp_path, updates=30, stop_on="critical", confirm=4)
    first = found.first_critical()
    assert first is not None and found.trainer.state.global_step == first["step"] + 4
