"""SkyRL: `rldk.attach("skyrl")` in the process that makes its `Tracking`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "skyrl"
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`Tracking.log`, which is called several times per step, and `Tracking.finish`."""
    place = "skyrl.train.utils.tracking"
    return [Hook(place, "Tracking.log", _rows), Hook(place, "Tracking.finish", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    yield call["data"], call["step"]
