"""Tinker cookbook: `rldk.attach("tinker")` before training, for everything that its loggers receive.

    ml_logger = ml_log.setup_logging(log_dir)
    rldk.attach("tinker")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "tinker"
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`MultiplexLogger`, which `setup_logging` returns: `log_metrics` and `close`."""
    place = "tinker_cookbook.utils.ml_log"
    return [Hook(place, "MultiplexLogger.log_metrics", _rows), Hook(place, "MultiplexLogger.close", ends=True)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    yield call["metrics"], call["step"]
