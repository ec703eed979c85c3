"""A real training that takes seconds: TRL's PPO on a tiny model, with rldk's callback or without."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "integrations"))

import trl_tiny

from rldk.integrations.trl import RLDKCallback

__all__ = ["be_quiet", "digest", "trainer_for", "watching"]


def trainer_for(folder: Path, callbacks: list[Any], updates: int) -> Any:
    """A trainer that saves a checkpoint every other update."""
    return trl_tiny.ppo_trainer(folder, callbacks, updates=updates, save_strategy="steps", save_steps=2)


def watching(folder: Path) -> RLDKCallback:
    return RLDKCallback(folder / "rldk", run_id="run", stop_on="critical", dry_run=True, terminal=False)


def digest(trainer: Any) -> str:
    """The weights, to the last bit."""
    made = hashlib.sha256()
    for one in trainer.model.parameters():
        made.update(one.detach().numpy().tobytes())
    return made.hexdigest()


def be_quiet() -> Any:
    """Send what libraries print to nowhere; returns the stream for the account."""
    told = os.fdopen(os.dup(1), "w")
    devnull = os.open(os.devnull, os.O_WRONLY)
    for one in (1, 2):
        os.dup2(devnull, one)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    return told
