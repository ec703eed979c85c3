"""How far quality on held-out data has fallen from its best: one answer for all rules."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from rldk.signals.few_rows import noise_of
from rldk.signals.series import EARLY, RECENT, Series
from rldk.signals.view import View

__all__ = ["HELD_OUT", "HeldOut", "held_out_fall"]

HELD_OUT = {"eval_accuracy": "accuracy", "eval_pass_at_1": "pass@1", "eval_reward_mean": "reward"}
"""The measures of quality on held-out data, in words. Shares have a natural zero, and a reward has none."""

LATEST = 3  # measurements whose median is the quality now; they are rare, and five may be half of a run


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Best and latest quality, the fall between them, the range the measure has covered, and the noise of a measurement.

    `size` is the reference for shares: the best value of an accuracy or a diversity, which have a natural zero. A reward
    has none, so there it is the range that the reward has covered.
    """

    best: float
    now: float
    lost: float
    whole: float
    noise: float
    size: float


def held_out_fall(view: View, name: str) -> HeldOut:
    """The fall of a quality that is measured occasionally, measured once per value: many events lie between two values."""
    series = view.get(name)
    found = view.memo.get((held_out_fall, name))
    if found is None or found[0] != series.n:
        found = view.memo[held_out_fall, name] = (series.n, _fall(series, has_zero=name != "eval_reward_mean"))
    return found[1]


def _fall(series: Series, has_zero: bool) -> HeldOut:
    """The median of the last three values against the best.

    The best is the highest median of three of the first twenty values, and of five later on.

    A third is added to the noise, because the best is the highest of many levels: with that, one in fifty series of pure
    chance (60 measurements of 16 questions) counts as a fall.
    """
    now, best = median(series.values()[-LATEST:]), max(series.high, series.first)
    if LATEST <= series.n <= EARLY:  # of few measurements, medians of five leave out the best
        early = series.early
        best = max(best, *(median(early[start : start + LATEST]) for start in range(len(early) - LATEST + 1)))
    noise = series.noise
    if RECENT <= series.n <= EARLY:  # a steady slide is not noise
        noise = min(noise, noise_of(series.early))
    noise = max(1.3 * noise, 1e-12)
    whole = best - min(series.low, series.first, now)
    return HeldOut(best, now, best - now, whole, noise, abs(best) if has_zero else whole)
