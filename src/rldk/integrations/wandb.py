"""Anything that logs to Weights & Biases: `rldk.attach("wandb")`, before or after `wandb.init`.

A run with `mode="disabled"` logs nothing that could be seen; use `mode="offline"` instead.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from rldk.core.catalog.axes import has_step
from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks", "refresh"]

FRAMEWORK = None
WHOLE_ROWS = False

_counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


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
    """A row with the step that it was given or names; otherwise with W&B's own count of calls."""
    data, step, run = call["data"], call["step"], call["self"]
    if step is None and not has_step(data):
        step = _counts.get(run, getattr(run, "starting_step", 0))
        _counts[run] = step + (call["commit"] is not False)
    yield data, step
