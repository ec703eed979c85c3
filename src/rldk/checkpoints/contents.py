"""What a checkpoint holds beside the weights, and what it does not: that decides what can be resumed from it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from rldk.checkpoints.checkpoint import Checkpoint

__all__ = ["notes_on"]

_VALUE = ("value_model.", "v_head.", "value_head.", "critic.", "score.")
_MOST = 64 << 20  # of a trainer_state.json; beyond it the log in it is not worth the memory


def notes_on(checkpoint: Checkpoint) -> list[str]:
    """Sentences for a reader: what is missing from a checkpoint, and what in it is not measured."""
    notes = []
    if checkpoint.adapter:
        rank = _settings(checkpoint.path, "adapter_config.json").get("r")
        size = f" of rank {rank}" if isinstance(rank, int) else ""
        notes.append(f"Only an adapter{size} is in the checkpoint; the weights it is added to are not.")
    if checkpoint.path.is_dir():
        if _was_ppo(checkpoint.path) and not any(part in name for name in checkpoint for part in _VALUE):
            notes.append(
                "The value model is not in the checkpoint: TRL's PPO saves the policy only, so the value function can neither "
                "be looked at here nor be resumed."
            )
        if not any(checkpoint.path.glob("optimizer*")) and (checkpoint.path / "trainer_state.json").is_file():
            notes.append("The state of the optimizer is not in the checkpoint: training cannot go on from here as it was.")
    passed = sorted({checkpoint.entry(name).dtype for name in checkpoint if not checkpoint.measured(name)})
    if passed:
        count = sum(not checkpoint.measured(name) for name in checkpoint)
        notes.append(f"Not measured, since they hold no floating-point numbers: {count} of the tensors ({', '.join(passed)}).")
    return notes


def _was_ppo(folder: Path) -> bool:
    rows = _settings(folder, "trainer_state.json").get("log_history")
    latest = [row for row in rows[-5:] if isinstance(row, dict)] if isinstance(rows, list) else []
    return any(key in row for row in latest for key in ("objective/kl", "loss/value_avg", "val/ratio"))


def _settings(folder: Path, name: str) -> dict[str, Any]:
    """A JSON object beside the weights; empty where there is none, or none that can be read."""
    path = (folder if folder.is_dir() else folder.parent) / name
    with suppress(OSError, ValueError, RecursionError):
        if path.stat().st_size <= _MOST:
            found = json.loads(path.read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
    return {}
