"""What a change of the learning rate did to the reward."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from statistics import fmean, stdev
from typing import Any

__all__ = ["learning_rate_impact"]

CHANGE = 0.2  # relative change of the rate that counts
BEYOND_SCHEDULE = 2.0  # a jump is this many times the changes of the rows beside it: a schedule changes the rate in every row
ROWS = 10  # rows on either side that are compared
MIN_ROWS = 3


def learning_rate_impact(
    steps: Sequence[int], rates: Sequence[float], rewards: Sequence[float], *, jumps_only: bool = False
) -> list[dict[str, Any]]:
    """For each change of the learning rate by a fifth or more: the mean reward of the rows before and after, and the difference.

    `effect` is the difference in units of the spread of the rows before; `None` where they have none. A schedule that moves the
    rate little by little counts each time it has moved by a fifth; with `jumps_only`, it does not count at all.
    """
    found: list[dict[str, Any]] = []
    for place, reference in (_jumps if jumps_only else _changes)(rates):
        before = [value for value in rewards[max(place - ROWS, 0) : place] if isfinite(value)]
        after = [value for value in rewards[place : place + ROWS] if isfinite(value)]
        if len(before) >= MIN_ROWS and len(after) >= MIN_ROWS:
            change, spread = fmean(after) - fmean(before), stdev(before)
            found.append({
                "step": steps[place], "from": reference, "to": rates[place], "reward_before": fmean(before),
                "reward_after": fmean(after), "effect": change / spread if spread > 0.0 else None,
            })  # fmt: skip
    return found


def _changes(rates: Sequence[float]) -> list[tuple[int, float]]:
    """The places at which the rate has moved by a fifth since the last such place, and the rate there."""
    found = []
    reference = next((rate for rate in rates if isfinite(rate)), 0.0)
    for place, rate in enumerate(rates):
        if isfinite(rate) and abs(rate - reference) > CHANGE * abs(reference):
            found.append((place, reference))
            reference = rate
    return found


def _jumps(rates: Sequence[float]) -> list[tuple[int, float]]:
    """The places at which the rate moved by a fifth within one row, and the rate of the row before."""
    given = [(place, rate) for place, rate in enumerate(rates) if isfinite(rate)]
    moves = [abs(now - before) for (_, before), (_, now) in pairwise(given)]
    found = []
    for row, move in enumerate(moves):
        (_, before), (place, _) = given[row], given[row + 1]
        beside = max([*moves[max(row - 1, 0) : row], *moves[row + 1 : row + 2]], default=0.0)
        if move > CHANGE * abs(before) and move > BEYOND_SCHEDULE * beside:
            found.append((place, before))
    return found
