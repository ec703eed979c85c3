"""For how long has this been so?"""

from __future__ import annotations

from math import nan

from rldk.core.stats.base import Statistic

__all__ = ["RunLength"]


class RunLength(Statistic):
    """Length of the current run of a condition, and the history of its runs.

    `None` is unknown: it neither extends nor breaks a run, and takes no part in `share`.
    """

    __slots__ = ("_since", "count", "length", "longest", "runs", "true_count")
    count: int
    true_count: int
    length: int
    longest: int
    runs: int
    _since: int

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = self.true_count = self.length = self.longest = self.runs = 0
        self._since = -1

    def update(self, condition: bool | None) -> None:
        """Take into account whether the condition holds now."""
        if condition is None:
            self.missing += 1
            return
        if condition:
            if not self.length:
                self.runs += 1
                self._since = self.count + self.missing
            self.length = length = self.length + 1
            self.true_count += 1
            if length > self.longest:
                self.longest = length
        else:
            self.length = 0
        self.count += 1

    @property
    def since(self) -> int | None:
        """The update (from 0, the unknown ones included) at which the current run began; `None` outside of a run."""
        return self._since if self.length else None

    @property
    def share(self) -> float:
        """Share of the known updates in which the condition held."""
        return self.true_count / self.count if self.count else nan
