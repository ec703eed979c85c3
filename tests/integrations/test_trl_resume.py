"""A GRPO run that is stopped, resumed from a checkpoint and finished has each step once, and the anomalies of a whole run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def train(out: Path, steps: int, resume: Any = None) -> Any:
    import trl_faults
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    watched = RLDKCallback(out / "rldk", run_id="run", terminal=False, enable_resource_monitoring=False)
    trainer = trl_tiny.group_trainer(
        "GRPO", out / "t", [watched], steps, reward=trl_faults.GroupReward("length"), save_strategy="steps", save_steps=6,
        lr_scheduler_type="constant",
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=resume)
    return watched


def test_no_step_is_repeated_or_lost(tmp_path: Path) -> None:
    train(tmp_path, 14)  # goes on beyond its last checkpoint, at 12, before it is killed
    resumed = train(tmp_path, 18, str(tmp_path / "t" / "checkpoint-12"))
    steps = [json.loads(line)["step"] for line in (tmp_path / "rldk" / "run_events.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 19))
    with (tmp_path / "rldk" / "run_metrics.csv").open(newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == list(range(1, 19))
    with (tmp_path / "rldk" / "run_checkpoint_summary.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert [int(row["step"]) for row in saved] == [6, 12, 18] and float(saved[-1]["update_ratio"]) > 0
    assert resumed.monitor is not None
    engine = resumed.monitor.forensics.engine
    assert engine.events == 18 and engine.first_step == 1
    assert "length_bias" in {one.type for one in resumed.anomalies}  # raised before the break, and known after it
    assert resumed.anomalies[0].index < 12
