"""The order of verdicts: the worst of some, how many there are of each, and how runs are sorted by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rldk.core.anomaly import SEVERITIES

__all__ = ["VERDICTS", "counts_of", "ranking", "worst_of"]

VERDICTS = (*reversed(SEVERITIES), "no_data", "healthy")
"""All verdicts, the worst first."""


def worst_of(verdicts: Iterable[str], default: str = "healthy") -> str:
    """The worst of some verdicts or severities."""
    return min(verdicts, key=VERDICTS.index, default=default)


def ranking(verdict: str, anomalies: int) -> tuple[int, int]:
    """The key by which runs are sorted: the worst verdict first, and of one verdict the run with most anomalies."""
    return VERDICTS.index(verdict), -anomalies


def counts_of(verdicts: Iterable[str]) -> dict[str, int]:
    """How many there are of each verdict, the worst first; those that do not occur are left out."""
    found = Counter(verdicts)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}
