"""Shares of few runs, said honestly: an interval for each, and how likely a difference is by chance."""

from __future__ import annotations

from math import exp, lgamma, sqrt

__all__ = ["chance_of_as_many", "wilson_interval"]

_Z = 1.959963984540054  # of 95 %


def wilson_interval(failed: int, runs: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's score interval): honest for few runs, and for 0 or all of them."""
    if not runs:
        return 0.0, 1.0
    share, squared = failed / runs, _Z * _Z / runs
    middle = (share + squared / 2) / (1 + squared)
    half = _Z * sqrt(share * (1 - share) / runs + squared / (4 * runs)) / (1 + squared)
    return max(0.0, middle - half), min(1.0, middle + half)


def chance_of_as_many(failed: int, runs: int, failed_others: int, others: int) -> float:
    """How likely at least so many of these runs would fail if they were like the others (Fisher's exact test, one-sided)."""
    total, bad = runs + others, failed + failed_others
    ways = _log_ways(total, runs)
    highest = min(runs, bad)
    return min(1.0, sum(exp(_log_ways(bad, k) + _log_ways(total - bad, runs - k) - ways) for k in range(failed, highest + 1)
                        if runs - k <= total - bad))  # fmt: skip


def _log_ways(things: int, chosen: int) -> float:
    return lgamma(things + 1) - lgamma(chosen + 1) - lgamma(things - chosen + 1)
