"""OpenRLHF: `rldk.attach("openrlhf")` in the process that runs the trainer: a Ray actor (see `rldk.integrations.ray_worker`).

It logs through `WandbLogger` or `TensorboardLogger`, so one of them has to be enabled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "openrlhf"
WHOLE_ROWS = False

_PLACE = "openrlhf.utils.logging_utils"


def hooks() -> list[Hook]:
    """Training and evaluation rows of both loggers. If both are enabled, each is a run of its own."""
    return [hook for logger in ("WandbLogger", "TensorboardLogger") for hook in _of(logger)]


def _of(logger: str) -> list[Hook]:
    return [
        Hook(_PLACE, f"{logger}.log_train", _rows),
        Hook(_PLACE, f"{logger}.log_eval", lambda call: _rows(call, "eval/")),
        Hook(_PLACE, f"{logger}.close", ends=True),
    ]


def _rows(call: Mapping[str, Any], prefix: str = "") -> Iterator[Row]:
    yield {prefix + key: value for key, value in call["logs_dict"].items()}, call["global_step"]
