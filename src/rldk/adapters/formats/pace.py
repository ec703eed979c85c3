"""Steps by what else a row tells: the counter before it, or its epoch where the length of the launch is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Length", "by_interval", "keeps_pace", "not_behind"]

_ROUNDED = 0.0051
"""The trainer prints epochs with two decimals, and newer ones with more."""


@dataclass(slots=True)
class Length:
    """How many steps and epochs a launch is going to have, as it says when it begins; 0 where it does not."""

    steps: int = 0
    epochs: int = 0


def keeps_pace(epochs: Sequence[float], steps: Sequence[int]) -> bool:
    """Whether the epochs grow as the steps do."""
    pace = epochs[-1] / max(1, steps[-1]) if steps else 0.0
    return all(abs(epoch - pace * step) <= 0.011 + 0.02 * epoch for epoch, step in zip(epochs, steps, strict=True))


def not_behind(counters: list[int]) -> list[int]:
    """The counters, each one more where they are one behind: there is no row of step 0, and rows come at round steps."""
    apart = math.gcd(*(later - earlier for earlier, later in pairwise(counters)))
    behind = len(counters) > 2 and apart > 1 and all((counter + 1) % apart == 0 for counter in counters)
    return [counter + 1 for counter in counters] if behind or counters[:1] == [0] else counters


def by_interval(epochs: Sequence[float], length: Length) -> list[int] | None:
    """The steps of rows that come every so many; `None` unless only one answer fits.

    All rows that the launch was to have must be there. Fewer steps than a whole epoch may be announced as one, so that
    the epochs of a launch which broke off do not tell its steps.
    """
    rows = len(epochs)
    if rows < 3 or not length.steps or not length.epochs:
        return None
    pace = length.epochs / length.steps
    every = {length.steps // rows, length.steps // max(1, rows - 1), round(epochs[-1] / pace / rows)}
    every |= {number + 1 for number in every}
    found = {
        tuple(steps)
        for number in every
        if number > 0
        for steps in (_rows(number, length.steps), _rows(number, length.steps, first=True))
        if len(steps) == rows and _fits(epochs, steps, pace)
    }
    return list(found.pop()) if len(found) == 1 else None


def _rows(every: int, steps: int, first: bool = False) -> list[int]:
    """The steps that are logged: each `every`-th, and the first where that was asked for."""
    return [1] * (first and every > 1) + list(range(every, steps + 1, every))


def _fits(epochs: Sequence[float], steps: Sequence[int], pace: float) -> bool:
    """Whether the epochs are those of the steps; within an epoch they run ahead by up to a step, the last being a short one."""
    return all(abs(epoch - pace * step) <= _ROUNDED + pace for epoch, step in zip(epochs, steps, strict=True))
