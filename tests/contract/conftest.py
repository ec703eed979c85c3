"""One real PPO training with the callbacks of the contract, shared by all tests of what it leaves behind."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations"))

UPDATES = 12


@dataclass
class PpoRun:
    """The folder of a run, and its callbacks by class name."""

    folder: Path
    callbacks: dict[str, Any]

    def path(self, ending: str) -> Path:
        return self.folder / f"mine_{ending}"


@pytest.fixture(scope="session")
def ppo_run(tmp_path_factory: pytest.TempPathFactory) -> PpoRun:
    pytest.importorskip("trl")
    import trl_tiny

    from rldk.integrations import trl as kit

    folder = tmp_path_factory.mktemp("contract")
    quiet = {"run_id": "mine", "terminal": False}
    callbacks = [
        kit.PPOMonitor(folder, kl_threshold=1e-9, **quiet),
        kit.ComprehensivePPOMonitor(folder, **quiet),
        kit.CheckpointMonitor(folder, run_id="mine"),
        kit.EventWriterCallback(folder / "own.jsonl"),
    ]
    trainer = trl_tiny.ppo_trainer(folder / "model", callbacks, UPDATES, save_strategy="steps", save_steps=UPDATES // 2)
    trainer.train()
    return PpoRun(folder, {type(one).__name__: one for one in callbacks})
