"""Shares that are logged in percent: an accuracy of 45.2 is 0.452."""

from __future__ import annotations

import numpy as np

from rldk.core.catalog import entry_of
from rldk.runs.table import NUMBER, Column

__all__ = ["percent_to_fraction"]

_UNBOUNDED = frozenset({"explained_variance", "mfu"})
"""Fractions that may be outside of 0 to 1, or whose unit each framework states."""
_SLACK = 1.5
"""A share may be a little above 1 by rounding or by its weights; a percentage soon is far above it."""


def percent_to_fraction(columns: dict[str, Column]) -> list[str]:
    """Divide shares between 0 and 100 of which some are far above 1; a note for each of them."""
    notes = []
    for name, column in columns.items():
        entry = entry_of(name)
        if entry is None or entry.unit != "fraction" or entry.name in _UNBOUNDED:
            continue
        values = column.values[(column.state == NUMBER) & np.isfinite(column.values)]
        if len(values) and values.min() >= 0.0 and _SLACK < values.max() <= 100.0:
            column.values = column.values / 100.0
            notes.append(f"{name} is logged in percent, and was divided by 100")
    return notes
