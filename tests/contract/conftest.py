"""One real PPO training with all callbacks of the contract, shared by all tests of what it leaves behind."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations"))

UPDATES = 12
LIMITS = {"kl_divergence": 0.1, "clip_fraction": 0.001, "gradient_norm": 0.01, "memory_usage": 0.0001, "stability": 0.999}
"""Limits that this run crosses, each under the name of the contract."""


@dataclass
class PpoRun:
    """The folder of a run, and its callbacks by class name."""

    folder: Path
    callbacks: dict[str, Any]

    def path(self, ending: str) -> Path:
        return self.folder / f"mine_{ending}"

    def json(self, ending: str) -> Any:
        return json.loads(self.path(ending).read_text())

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path("events.jsonl").read_text().splitlines()]

    def rows(self, ending: str) -> list[dict[str, str]]:
        with self.path(ending).open(newline="") as file:
            return list(csv.DictReader(file))


def callbacks_of(folder: Path) -> list[Any]:
    """The callbacks with the parameters that the contract lists."""
    from rldk.integrations import trl as kit

    quiet = {"terminal": False}
    return [
        kit.RLDKCallback(
            output_dir=folder, log_interval=10, jsonl_log_interval=1, enable_jsonl_logging=True, alert_thresholds=LIMITS,
            run_id="mine", enable_resource_monitoring=True, enable_checkpoint_analysis=True, **quiet,
        ),
        kit.RLDKMonitor(folder, **quiet),
        kit.PPOMonitor(
            output_dir=folder, kl_threshold=0.1, reward_threshold=0.05, gradient_threshold=1.0, run_id="mine", **quiet
        ),
        kit.CheckpointMonitor(output_dir=folder, enable_parameter_analysis=True, enable_gradient_analysis=True),
        kit.ComprehensivePPOMonitor(
            output_dir=folder, kl_target=None, kl_target_tolerance=0.05, window_size=100, enable_kl_schedule_tracking=True,
            enable_gradient_norms_analysis=True, enable_advantage_statistics=True, enable_length_bias_detection=True,
            length_bias_threshold=0.35, **quiet,
        ),
        kit.AdvancedPPOMonitor(output_dir=folder, kl_threshold=0.08, enable_advanced_analytics=True, **quiet),
        kit.CustomRLDKCallback(
            output_dir=folder, performance_benchmarks={"target_reward": 1.0, "max_kl_divergence": 0.1}, **quiet
        ),
        kit.EventWriterCallback(folder / "own.jsonl"),
    ]  # fmt: skip


@pytest.fixture(scope="session")
def ppo_run(tmp_path_factory: pytest.TempPathFactory) -> PpoRun:
    pytest.importorskip("trl")
    import trl_tiny

    folder = tmp_path_factory.mktemp("contract")
    callbacks = callbacks_of(folder)
    saving = {"save_strategy": "steps", "save_steps": UPDATES // 2}
    trainer = trl_tiny.ppo_trainer(folder / "model", callbacks, UPDATES, size={"layers": 2}, **saving)
    trl_tiny.settle()
    trainer.train()
    return PpoRun(folder, {type(one).__name__: one for one in callbacks})
