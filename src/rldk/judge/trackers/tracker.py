"""What all trackers share: a record of what they know, and its summary."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from rldk.core.files import strict
from rldk.core.stats.base import Statistic
from rldk.judge.trackers.snapshot import Snapshot

__all__ = ["Tracker"]


class Tracker(Statistic):
    """Follows some of a run's metrics in constant time and bounded memory.

    Saved, restored and started anew as every statistic is. `update` of a subclass takes what was logged at a step and
    gives the record; `observe` takes it without making one.
    """

    __slots__ = ("step", "values")
    step: int
    values: int

    def reset(self) -> None:
        super().reset()
        self.step = self.values = 0

    @abstractmethod
    def metrics(self) -> Snapshot:
        """What is known now, as a record that later updates do not change."""

    def get_summary(self) -> dict[str, Any]:
        """The latest record as strict JSON, with the parts of its scores and the number of values it rests on."""
        found = self.metrics()
        parts = getattr(found, "score_parts", {})
        return {**found.to_dict(), "values": self.values, "score_parts": strict(parts)}
