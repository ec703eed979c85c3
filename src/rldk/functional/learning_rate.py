"""What a change of the learning rate did to the reward."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import fmean, stdev
from typing import Any

__all__ = ["learning_rate_impact"]

CHANGE = 0.2  # relative change of the rate that counts
ROWS = 10  # rows on either side that are compared
LEAST = 3


def learning_rate_impact(steps: Sequence[int], rates: Sequence[float], rewards: Sequence[float]) -> list[dict[str, Any]]:
    """For each change of the learning rate by a fifth or more: the mean reward of the rows before and after, and the difference.

    `effect` is the difference in units of the spread of the rows before; `None` where they have none.
    """
    found: list[dict[str, Any]] = []
    reference = next((rate for rate in rates if isfinite(rate)), 0.0)
    for place, rate in enumerate(rates):
        if not isfinite(rate) or abs(rate - reference) <= CHANGE * abs(reference):
            continue
        before = [value for value in rewards[max(place - ROWS, 0) : place] if isfinite(value)]
        after = [value for value in rewards[place : place + ROWS] if isfinite(value)]
        if len(before) >= LEAST and len(after) >= LEAST:
            change, spread = fmean(after) - fmean(before), stdev(before)
            found.append({
                "step": steps[place], "from": reference, "to": rate, "reward_before": fmean(before),
                "reward_after": fmean(after), "effect": change / spread if spread > 0.0 else None,
            })  # fmt: skip
        reference = rate
    return found
