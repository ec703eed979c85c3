"""The two-sided tabular CUSUM of the textbooks (Montgomery, Introduction to Statistical Quality Control, chapter 9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldk.core.event import Event

from .alarm import Alarm
from .simple_rules import MAIN, PAUSE, column

__all__ = ["BASELINE", "DECISION", "SLACK", "cusum"]

SLACK, DECISION = 0.5, 5.0
"""k and h, in standard deviations: the textbook's choice for shifts of one standard deviation."""
BASELINE = 25
"""Values at the start of a metric from which its mean and standard deviation are taken; none of them raises an alarm. The
textbooks take 20 to 25 samples for this."""


@np.errstate(over="ignore", invalid="ignore")
def cusum(events: Sequence[Event], names: Sequence[str] = MAIN) -> list[Alarm]:
    """Rows at which the sum of what exceeds the slack passes the decision limit, upwards or downwards.

    As with the other simple rules, a metric is left alone for some rows after its alarm; then the sums begin again at 0.
    Values that are missing or not finite are passed over.
    """
    alarms: list[Alarm] = []
    for name in names:
        values = column(events, name)
        rows = np.flatnonzero(np.isfinite(values))
        if len(rows) > BASELINE:
            z = _standardised(values[rows])
            alarms += [(row, "warning", name) for row in _signals(z, rows[BASELINE:])]
    return sorted(alarms)


def _standardised(known: np.ndarray) -> np.ndarray:
    """The values after the baseline in its standard deviations from its mean."""
    first = known[:BASELINE]
    mean, spread = float(first.mean()), float(first.std(ddof=1))
    z: np.ndarray = (known[BASELINE:] - mean) / max(spread, 1e-12 + 1e-9 * abs(mean))
    return z


def _signals(z: np.ndarray, rows: np.ndarray) -> list[int]:
    signals: list[int] = []
    start = 0
    while start < len(z):
        sums = np.maximum(_sums(z[start:] - SLACK), _sums(-z[start:] - SLACK))
        over = np.flatnonzero(sums > DECISION)
        if not len(over):
            break
        signals.append(int(rows[start + over[0]]))
        start = int(np.searchsorted(rows, signals[-1] + PAUSE))
    return signals


def _sums(excess: np.ndarray) -> np.ndarray:
    """The recursion C = max(0, C + excess) from 0 in closed form: the running total over the lowest one so far."""
    total = np.cumsum(excess)
    return total - np.minimum(np.minimum.accumulate(total), 0.0)
