"""What all trackers share: saving and restoring, a record of what they know, and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import nan
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.files import strict
from rldk.core.jsonio import to_number
from rldk.core.stats.base import Statistic

__all__ = ["Snapshot", "Tracker", "number"]


class Snapshot:
    """Base of the records. A new record is made for each reading and never changed. Fields that begin with `_` are not shown."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The record as strict JSON; what is not known is `None`."""
        names = [one.name for one in fields(self) if not one.name.startswith("_")]  # type: ignore[arg-type]
        return {name: strict(getattr(self, name)) for name in names}


class Tracker(Statistic):
    """Follows some of a run's metrics in constant time and bounded memory.

    `observe` takes the metrics of a step by their canonical names; `update` of a subclass takes them by keyword, and returns
    the record that `metrics` makes.
    """

    __slots__ = ("step", "values")
    step: int
    values: int

    def reset(self) -> None:
        super().reset()
        self.step = self.values = 0

    def observe(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Take what was logged at a step. Returns whether any of it concerns this tracker."""
        raise NotImplementedError

    def metrics(self) -> Snapshot:
        """What is known now, as a record that later updates do not change."""
        raise NotImplementedError

    def get_summary(self) -> dict[str, Any]:
        """The latest record as strict JSON, with the parts of its scores and the number of values behind it."""
        found = self.metrics()
        parts = getattr(found, "score_parts", {})
        return {**found.to_dict(), "values": self.values, "score_parts": strict(parts)}


def number(name: str, value: Any) -> float:
    """A metric's value as a float; `None` is missing, and so NaN."""
    if type(value) is float:
        return value
    if value is None:
        return nan
    found = to_number(value)
    if found is None:
        raise UsageError(f"Expected `{name}` to be a number, got {value!r:.80}.")
    return found
