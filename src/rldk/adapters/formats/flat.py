"""Nested objects as flat rows: `{"train": {"loss": 1}}` is `train/loss`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldk.runs.lists import mean_of

__all__ = ["flatten"]

_MAX_DEPTH = 8


def flatten(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with nested objects unfolded; a list is left out, or the mean of what it measures: a row holds one value a key."""
    for value in row.values():
        if type(value) is dict or type(value) is list:
            flat: dict[str, Any] = {}
            _unfold(row, "", flat, 0)
            return flat
    return row


def _unfold(row: Mapping[str, Any], prefix: str, into: dict[str, Any], depth: int) -> None:
    for key, value in row.items():
        if type(value) is dict:
            if depth < _MAX_DEPTH:
                _unfold(value, f"{prefix}{key}/", into, depth + 1)
        elif type(value) is not list:
            into[prefix + key] = value
        elif (mean := mean_of(prefix + key, value)) is not None:
            into[prefix + key] = mean
