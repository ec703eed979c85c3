"""Checkpoints as report and dashboard show them: the columns of their summary, and how far the weights moved."""

from __future__ import annotations

from math import nan

import numpy as np

from rldk.core.jsonio import to_number
from rldk.core.text import clean, short_number
from rldk.present.html import badge
from rldk.present.plots.panel import Curve, Panel
from rldk.present.plots.source import Source

__all__ = ["NAMES", "SHOWN", "checkpoint_panel", "shown_cell"]

SHOWN = {
    "checkpoint": "checkpoint",
    "step": "step",
    "verdict": "verdict",
    "health_score": "health",
    "update_ratio": "update / norm",
    "drift_from_start": "drift from start",
    "norm": "norm",
    "nonfinite_parameters": "not finite",
    "dead_tensors": "dead tensors",
    "most_moved_layer": "moved most",
    "problems": "problems",
}
"""The columns of the summary that are shown first, with their headings."""


NAMES = frozenset({"checkpoint", "kind", "most_moved_layer", "weakest_gradient_layer", "strongest_gradient_layer"})
"""The columns whose cells are names, even where they look like numbers."""


def shown_cell(name: str, value: str) -> str:
    """A cell of the summary as a table shows it."""
    if name == "verdict":
        return badge(value)
    number = None if name in NAMES else to_number(value)
    return clean(value, 300) if number is None else short_number(number)


def checkpoint_panel(rows: list[dict[str, str]], source: Source) -> Panel | None:
    """How far the weights moved from one checkpoint to the next, and from the start."""
    steps = source.places(np.array([_number(row.get("step", "")) for row in rows]))
    curves = []
    for number, (name, label) in enumerate((("update_ratio", "since the last"), ("drift_from_start", "since the start"))):
        values = np.array([_number(row.get(name, "")) for row in rows])
        there = np.isfinite(steps) & np.isfinite(values)
        if there.sum() > 1:
            curves.append(Curve(label, name, steps[there], values[there], colour=number))
    return Panel("checkpoints", "Checkpoints", "How far the weights moved", "of their norm", curves) if curves else None


def _number(text: str) -> float:
    number = to_number(text)
    return nan if number is None else number
