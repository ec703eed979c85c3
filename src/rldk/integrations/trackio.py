"""Anything that logs to trackio: `rldk.attach("trackio")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row
from rldk.integrations.step_count import StepCount

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = None
WHOLE_ROWS = False

_count = StepCount()


def hooks() -> list[Hook]:
    """`Run.log`, by which `trackio.log` logs too, and `Run.finish`."""
    return [Hook("trackio.run", "Run.log", _rows, lambda run: run.name), Hook("trackio.run", "Run.finish", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    """A row with its step: given, among its keys, or trackio's count of calls."""
    yield call["metrics"], _count.step(call["self"], call["metrics"], call["step"])
