"""ART: `rldk.attach("art")`, for everything that `Model.log` writes to its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = "art"
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`Model._log_metrics`, by which `Model.log` and the backends write each row of `history.jsonl`."""
    return [Hook("art.model", "Model._log_metrics", _rows, lambda model: model.name)]


def _rows(call: Mapping[str, Any]) -> Iterator[Row]:
    """Keys as ART writes them: those that name neither a section nor a split get the split as a prefix."""
    model = import_module("art.model")
    named = {*model.METRIC_SECTIONS, *model.METRIC_SPLITS}
    own = f"{call['split']}/"
    row = {key if "/" in key and key.split("/")[0] in named else own + key: value for key, value in call["metrics"].items()}
    yield row, call["step"]
