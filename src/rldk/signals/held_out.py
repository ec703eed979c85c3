"""How far quality on data that nobody trains on has fallen from its best: one answer for all rules."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rldk.signals.series import Series

__all__ = ["HeldOut", "held_out_fall"]

LATEST = 3  # measurements that say how good it is now; they are rare, and five of them may be half of a run


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Best and latest quality, by how much it fell, out of how much it ever varied by, and the noise of a measurement."""

    best: float
    now: float
    lost: float
    whole: float
    noise: float


def held_out_fall(series: Series) -> HeldOut:
    """The fall of a quality that is measured now and then: the median of its last three values against its best level.

    The noise is that of the last values, so that the fall itself counts for little of it.
    """
    recent = series.values()
    now, best = median(recent[-LATEST:]), max(series.high, series.first)
    steps = [abs(after - before) for before, after in pairwise(recent)]
    noise = max(0.886 * sum(steps) / max(len(steps), 1), 0.5 * series.noise, 1e-12)
    return HeldOut(best, now, best - now, best - min(series.low, series.first, now), noise)
