"""Single values as trackers keep them, `step, time, key, value`, gathered into rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Point", "gather", "unique_names"]

Point = tuple[int, float, str, float]
"""A step, the time in seconds, a key and its value."""

_OWN = frozenset({"step", "wall_time", "run_id"})


def gather(points: Iterable[Point], run_id: str | None) -> Iterator[dict[str, Any]]:
    """Rows of the points in their order: those of one step that follow each other are one row, until a key comes again.

    What is logged under the name of an axis gives way to the axis that the store itself keeps.
    """
    row: dict[str, Any] = {}
    at: int | None = None
    for step, time, key, value in points:
        if step != at or key in row:
            if key in _OWN:
                continue
            if row:
                yield row
            row = {"step": step, "wall_time": time}
            if run_id is not None:
                row["run_id"] = run_id
            at = step
        row[key] = value
    if row:
        yield row


def unique_names(names: dict[str, str | None]) -> dict[str, str]:
    """What to call each run, by its id: its name, with the id where several have that name, or else the id alone."""
    given = [name for name in names.values() if name]
    shared = {name for name in given if given.count(name) > 1} if len(set(given)) < len(given) else set()
    return {key: f"{name} ({key[:8]})" if name in shared else name or key for key, name in names.items()}
