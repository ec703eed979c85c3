"""A slow drift: the means of blocks of rows that all move the same way."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from math import inf, isfinite

from rldk.core.stats.base import Statistic

__all__ = ["BLOCK", "BlockDrift"]

BLOCK = 25
BLOCKS = 5
EARLY = 2
MIN_STEP = 0.1


class BlockDrift(Statistic):
    """The means of the last five blocks of 25 rows; the first two blocks of a run, in which it finds its level, do not count.

    A mean that is not finite is left out.
    """

    __slots__ = ("_count", "_means", "_seen", "_total")

    _means: deque[float]

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self._means = deque(maxlen=BLOCKS)
        self._count = self._seen = 0
        self._total = 0.0

    def add(self, value: float) -> bool:
        """Take the next row. Returns whether it ends a block."""
        self._total += value / BLOCK
        self._count += 1
        if self._count < BLOCK:
            return False
        self._seen += 1
        if self._seen > EARLY and isfinite(self._total):
            self._means.append(self._total)
        self._total, self._count = 0.0, 0
        return True

    @property
    def before(self) -> float:
        """The mean of the oldest block."""
        return self._means[0]

    @property
    def after(self) -> float:
        """The mean of the latest block."""
        return self._means[-1]

    def change(self, max_step: float = inf) -> float:
        """The change from the oldest to the latest mean if each step is a tenth to `max_step` of it, else 0."""
        if len(self._means) < BLOCKS:
            return 0.0
        change = self.after - self.before
        steady = change and all(MIN_STEP < (after - before) / change < max_step for before, after in pairwise(self._means))
        return change if steady else 0.0
