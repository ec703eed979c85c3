"""A default alert at the very last event of a training is in its log, as it is in its list of alerts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full
LOW = "low_training_stability"


def train(folder: Path, updates: int) -> Any:
    """A PPO training whose reward is not a number from its second call on: its stability is low from there."""
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    options = {"terminal": False, "enable_resource_monitoring": False, "skip_nonfinite_steps": True}
    watched = RLDKCallback(folder, run_id="run", **options)
    reward = trl_tiny.RuleReward("nan", onset=2)
    trl_tiny.ppo_trainer(folder / "model", [watched], updates, reward=reward, per_device_train_batch_size=8).train()
    return watched


def test_a_default_alert_at_the_last_event_is_in_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rldk.cli.main import main

    pytest.importorskip("trl")
    longer = train(tmp_path / "longer", 10)
    (alert,) = [one for one in longer.anomalies if one.type == LOW]
    last = train(tmp_path / "last", alert.step)
    assert [one.step for one in last.anomalies if one.type == LOW] == [alert.step]
    log = tmp_path / "last" / "run_events.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row["step"] for row in rows] == [*range(1, alert.step + 1), alert.step]
    assert alert.message in rows[-1]["notes"] and rows[-1]["metrics"] == {"alert_count": 1.0}
    capsys.readouterr()
    main(["scan", str(log), "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    listed = json.loads((tmp_path / "last" / "run_alerts.json").read_text())
    assert [(one["type"], one["step"], one["index"]) for one in run["anomalies"]] == [
        (one["type"], one["step"], one["index"]) for one in listed
    ]
    assert run["events"] == alert.step
