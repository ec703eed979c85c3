"""Rows that say they were measured on held-out data: their metrics are not the training's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import entry_of
from rldk.core.catalog.axes import HELD_OUT
from rldk.runs.run import Coverage
from rldk.runs.table import ABSENT, Column

__all__ = ["held_out_rows", "part_held_out"]


def held_out_rows(phase: Column) -> npt.NDArray[np.bool_]:
    """Which rows say that they were measured on held-out data."""
    is_held_out = np.array([*(word.lower() in HELD_OUT for word in phase.words), False])
    return is_held_out[phase.codes] if phase.codes is not None else np.zeros(len(phase.state), dtype=bool)


def part_held_out(columns: dict[str, Column], coverage: Coverage, held_out: npt.NDArray[np.bool_]) -> None:
    """Give the metrics in rows of held-out data `eval_` before their names, so that they are not taken for the training's."""
    for name in [name for name in columns if not name.startswith("eval_")]:
        column = columns[name]
        there = (column.state != ABSENT) & held_out
        entry = entry_of(name)
        if not there.any() or (entry is not None and entry.group == "settings"):
            continue
        own = Column(np.where(there, column.values, np.nan), np.where(there, column.state, ABSENT))
        columns[f"eval_{name}"] = columns[f"eval_{name}"].fill(own) if f"eval_{name}" in columns else own
        columns[name] = Column(np.where(there, np.nan, column.values), np.where(there, ABSENT, column.state))
        if name in coverage.metrics:
            coverage.metrics.setdefault(f"eval_{name}", coverage.metrics[name])
            coverage.reductions.setdefault(f"eval_{name}", coverage.reductions[name])
        else:
            coverage.unmapped.append(f"eval_{name}")
