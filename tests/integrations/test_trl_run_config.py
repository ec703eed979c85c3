"""What a real training was started with, as its event log and `R_config.json` tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rldk.ingest import read_runs

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def train(kind: str, folder: Path, **options: Any) -> Any:
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    watched = RLDKCallback(
        folder / "rldk", run_id="run", terminal=False, enable_resource_monitoring=False, strict=True, kl_target=6.0,
        alert_thresholds={"kl_divergence": 10.0, "health": 0.5}, stop_on="critical",
    )  # fmt: skip
    make = trl_tiny.ppo_trainer if kind == "ppo" else lambda *given, **more: trl_tiny.group_trainer("GRPO", *given, **more)
    make(folder / "t", [watched], 2, hub_token="hf_abcdefghijklmnopqrstuvwxyz", **options).train()
    (run,) = read_runs(folder / "rldk" / "run_events.jsonl").runs
    return run


def test_grpo(tmp_path: Path) -> None:
    config = train("grpo", tmp_path, beta=0.07).config
    wanted = {
        "learning_rate": 3e-3, "kl_coef": 0.07, "num_generations": 4, "max_response_length": 12, "max_steps": 2,
        "temperature": 1.0, "micro_batch_size": 16, "clip_range": 0.2, "bf16": False,
    }  # fmt: skip
    assert {knob: config[knob] for knob in wanted} == wanted
    assert (config.owner, config.key_of("kl_coef"), config.raw["trainer"]) == ("GRPOConfig", "beta", "GRPOTrainer")
    assert config["model"].endswith("start")
    assert config.rldk == {
        "limits": {"kl_mean": {"max": 10.0}}, "kl_target": 6.0, "min_scores": {"overall_health": 0.5}, "stop_on": "critical",
        "per": {"kl_mean": "token"},
    }  # fmt: skip


def test_ppo_and_no_secret_in_any_file(tmp_path: Path) -> None:
    run = train("ppo", tmp_path)
    assert (run.config.owner, run.config.key_of("clip_range"), run.config["clip_range"]) == ("PPOConfig", "cliprange", 0.2)
    assert run.config.rldk["per"] == {"kl_mean": "sequence"}
    written = json.loads((tmp_path / "rldk" / "run_config.json").read_text())
    assert written["knobs"] == dict(run.config) and written["rldk"] == run.config.rldk
    for path in (tmp_path / "rldk").iterdir():
        text = path.read_text()
        assert "hf_abc" not in text and "hub_token" not in text, path
    assert [record.run_id for record in read_runs(tmp_path / "rldk").runs] == ["run"]  # the file is not taken for a log
