"""Shares that are logged in percent, read as fractions.

A share that is far above 1 shows that its key is in percent. All values of a table are known, and are divided alike. While a run
works only the first one is known, and decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from rldk.core.catalog import entry_of
from rldk.runs.table import NUMBER, Column

__all__ = ["Percentages", "percent_to_fraction"]

_UNBOUNDED = frozenset({"explained_variance", "mfu"})
"""Fractions that may be outside of 0 to 1, or whose unit each framework states."""
_SLACK = 1.5
"""A share may be a little above 1 by rounding or by its weights; a percentage soon is far above it."""

_MAX_DECIDED = 10_000  # names: a run may have a new one in each row


@lru_cache(maxsize=8192)
def _is_share(name: str) -> bool:
    entry = entry_of(name)
    return entry is not None and entry.unit == "fraction" and entry.name not in _UNBOUNDED


class Percentages:
    """The metrics of one run that are logged in percent: those whose first value other than 0 is far above 1.

    That is decided once. Values that were passed on as fractions cannot be taken back, and a later one far above 1 may be a
    glitch: a percentage that begins below 1.5 stays as it is.
    """

    def __init__(self) -> None:
        self._percent: set[str] = set()
        self._decided: set[str] = set()

    def to_fractions(self, metrics: dict[str, float]) -> dict[str, float]:
        """The metrics with percentages divided by 100; the same object where there are none."""
        for name, value in metrics.items():
            if name not in self._decided and len(self._decided) < _MAX_DECIDED and value != 0.0 and math.isfinite(value):
                self._decided.add(name)
                if _SLACK < value <= 100.0 and _is_share(name):
                    self._percent.add(name)
        if self._percent.isdisjoint(metrics):
            return metrics
        return {name: value / 100.0 if name in self._percent else value for name, value in metrics.items()}

    def state_dict(self) -> dict[str, Any]:
        """What was decided, as JSON can hold it."""
        return {"decided": sorted(self._decided), "percent": sorted(self._percent)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with what was decided before."""
        self._decided, self._percent = set(state["decided"]), set(state["percent"])


def percent_to_fraction(columns: dict[str, Column]) -> list[str]:
    """Divide shares between 0 and 100 of which some are far above 1; a note for each of them."""
    notes = []
    for name, column in columns.items():
        if not _is_share(name):
            continue
        values = column.values[(column.state == NUMBER) & np.isfinite(column.values)]
        if len(values) and values.min() >= 0.0 and _SLACK < values.max() <= 100.0:
            column.values = column.values / 100.0
            notes.append(f"{name} is logged in percent, and was divided by 100")
    return notes
