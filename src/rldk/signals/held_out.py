"""How far quality on data that nobody trains on has fallen from its best: one answer for all rules."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from rldk.signals.series import Series

__all__ = ["HeldOut", "held_out_fall"]

LATEST = 3  # measurements that say how good it is now; they are rare, and five of them may be half of a run


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Best and latest quality, by how much it fell, out of how much it ever varied by, and the noise of a measurement.

    `size` is what a share of the best is a share of: the best of an accuracy or a diversity, which have a zero of their own.
    A reward has none, so it is what the reward ever varied by.
    """

    best: float
    now: float
    lost: float
    whole: float
    noise: float
    size: float


def held_out_fall(series: Series, has_zero: bool = True) -> HeldOut:
    """The fall of a quality that is measured now and then: the median of its last three values against its best level.

    A third is added to the noise, since the best is the highest of many levels: so one in fifty courses of pure chance (60
    measurements of 16 questions) is taken for a fall.
    """
    now, best = median(series.values()[-LATEST:]), max(series.high, series.first)
    noise = max(1.3 * series.noise, 1e-12)
    whole = best - min(series.low, series.first, now)
    return HeldOut(best, now, best - now, whole, noise, abs(best) if has_zero else whole)
