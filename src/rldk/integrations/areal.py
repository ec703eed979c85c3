"""AReaL: `rldk.attach("areal")` in the process that makes its `StatsLogger`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "areal"
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`StatsLogger.commit`, which is given one row or several, and `StatsLogger.close`."""
    place = "areal.utils.stats_logger"
    return [Hook(place, "StatsLogger.commit", _rows), Hook(place, "StatsLogger.close", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    """AReaL counts the rows up to the step that was committed last."""
    data = [call["data"]] if isinstance(call["data"], Mapping) else list(call["data"])
    last = getattr(call["self"], "_last_commit_step", call["global_step"] + len(data) - 1)
    for number, row in enumerate(data):
        yield {key: value for key, value in row.items() if not key.endswith("__count")}, last - len(data) + 1 + number
