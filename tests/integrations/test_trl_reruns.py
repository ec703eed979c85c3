"""One run, one story: a second run of the same id, and a training that was interrupted and begun again."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def steps(path: Path) -> list[int]:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [int(row["step"]) for row in csv.DictReader(file)]
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_an_interrupted_ppo_begun_again_with_one_callback_more(tmp_path: Path, caplog: Any) -> None:
    import trl_tiny
    from transformers import TrainerCallback

    from rldk.integrations.trl import EventWriterCallback, PPOMonitor, RLDKCallback

    class Interrupted(TrainerCallback):
        armed = True

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.armed and state.global_step == 2:
                raise KeyboardInterrupt

    out, interrupted = tmp_path / "rldk", Interrupted()
    first = RLDKCallback(out, run_id="run", terminal=False, enable_resource_monitoring=False)
    trainer = trl_tiny.ppo_trainer(tmp_path / "t", [first, interrupted], 4)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    interrupted.armed = False
    added = [EventWriterCallback(tmp_path / "own.jsonl"), PPOMonitor(out, kl_threshold=1e-9, terminal=False)]
    for callback in added:
        trainer.add_callback(callback)
    with caplog.at_level(logging.DEBUG, "rldk"):
        trainer.train()
    assert "this is a new run" in caplog.text and "failed" not in caplog.text
    for said in ("attached to PPOTrainer", "step 1: kl_mean from objective/kl", "step 1: policy_grad_norm from probe"):
        assert caplog.text.count(said) == 1  # what is read from where
    for ending in ("events.jsonl", "metrics.csv"):
        assert steps(out / f"run_1_{ending}") == [1, 2]  # what the interrupted one had written
        assert steps(out / f"run_{ending}") == [1, 2, 3, 4]
    assert steps(tmp_path / "own.jsonl") == [1, 2, 3, 4]
    assert len(first.metrics_history) == 6 and len(added[1].ppo_metrics_history) == 4
    alerts = json.loads((out / "run_alerts.json").read_text())
    assert any(one["type"] == "user_limit_exceeded" for one in alerts)  # the limit of the callback that was added
    assert json.loads((out / "run_1_final_report.json").read_text())["events"] == 2
