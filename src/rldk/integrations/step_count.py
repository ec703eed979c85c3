"""Steps for trackers that count the calls."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from rldk.core.catalog.axes import has_step

__all__ = ["StepCount"]


class StepCount:
    """Counts the calls of each run that have no step."""

    def __init__(self) -> None:
        self._next: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def step(self, run: Any, row: Mapping[str, Any], given: Any, commit: bool = True) -> Any:
        """The given step; without one, the run's count of calls, unless the row names its step.

        With `commit`, the next call is another step.
        """
        if given is not None or has_step(row):
            return given
        step = self._next.get(run, getattr(run, "starting_step", 0))
        self._next[run] = step + commit
        return step
