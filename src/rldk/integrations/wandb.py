"""Anything that logs to Weights & Biases: `rldk.attach("wandb")`, before or after `wandb.init`.

A run with `mode="disabled"` logs nothing that rldk could see; use `mode="offline"` instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row
from rldk.integrations.step_count import StepCount

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks", "refresh"]

FRAMEWORK = None
WHOLE_ROWS = False

_count = StepCount()


def hooks() -> list[Hook]:
    """`Run.log`, by which `wandb.log` logs too, and `Run.finish`."""
    place = "wandb.sdk.wandb_run"
    return [Hook(place, "Run.log", _rows, lambda run: run.id), Hook(place, "Run.finish", ends=True)]


def refresh() -> None:
    """`wandb.log` of a run that has begun is bound to the method as it was: bind it again."""
    wandb = sys.modules["wandb"]
    if getattr(wandb, "run", None) is not None:
        wandb.log = wandb.run.log  # type: ignore[attr-defined]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    """A row with its step: given, among its keys, or W&B's count of calls."""
    yield call["data"], _count.step(call["self"], call["data"], call["step"], call["commit"] is not False)
