"""Anything that logs to trackio: `rldk.attach("trackio")`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from rldk.core.catalog.axes import has_step
from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = None
WHOLE_ROWS = False

_counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def hooks() -> list[Hook]:
    """`Run.log`, by which `trackio.log` logs too, and `Run.finish`."""
    return [Hook("trackio.run", "Run.log", _rows, lambda run: run.name), Hook("trackio.run", "Run.finish", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    """A row with the step that it was given or names; otherwise with trackio's own count of calls."""
    data, step, run = call["metrics"], call["step"], call["self"]
    if step is None and not has_step(data):
        step = _counts.get(run, 0)
        _counts[run] = step + 1
    yield data, step
