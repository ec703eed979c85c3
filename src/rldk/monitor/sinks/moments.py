"""Summary statistics of all metrics of a run, worked out for many rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan, sqrt
from typing import Any

__all__ = ["MetricMoments"]

_BATCH = 32


class _Moments:
    """Of one metric: what `RunningMoments` knows, as far as a report shows it."""

    __slots__ = ("count", "m2", "max", "mean", "min", "nonfinite")

    def __init__(self) -> None:
        self.count = self.nonfinite = 0
        self.mean = self.m2 = 0.0
        self.min, self.max = inf, -inf

    def merge(self, count: int, mean: float, m2: float, low: float, high: float) -> None:
        """Add a part of which these are known, by the formula of Chan, Golub and LeVeque (1979)."""
        before, self.count = self.count, self.count + count
        away, share = mean - self.mean, count / self.count
        if before and abs(away) == inf:  # 1e308 after -1e308
            self.mean, self.m2 = self.mean * (1.0 - share) + mean * share, inf
        else:
            self.mean = self.mean + away * share if before else mean
            self.m2 += m2 + (away * away * before * share if before else 0.0)
        self.min, self.max = min(self.min, low), max(self.max, high)

    def to_dict(self, first: float, last: float) -> dict[str, Any]:
        known = self.count > 0
        return {
            "count": self.count,
            "nonfinite": self.nonfinite,
            "first": first,
            "last": last,
            "mean": self.mean if known else nan,
            "std": sqrt(self.m2 / (self.count - 1)) if self.count > 1 else nan,
            "min": self.min if known else nan,
            "max": self.max if known else nan,
        }


class MetricMoments:
    """Count, mean, spread and extremes of every metric of a run; those that are not finite are counted, and no more.

    Rows wait until there are 32 of them: numpy takes for all metrics of 32 rows about as long as Python for one row.
    """

    def __init__(self) -> None:
        self._moments: dict[str, _Moments] = {}
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._waiting: list[dict[str, float]] = []

    def add(self, metrics: Mapping[str, float]) -> None:
        """Take the metrics of an event."""
        self._waiting.append(dict(metrics))
        if len(self._waiting) >= _BATCH:
            self._fold()

    def by_metric(self) -> dict[str, dict[str, Any]]:
        """What is known of each metric, by name."""
        self._fold()
        return {name: self._moments[name].to_dict(self._first[name], self._last[name]) for name in sorted(self._moments)}

    def _fold(self) -> None:
        rows, self._waiting = self._waiting, []
        alike: dict[tuple[str, ...], list[Any]] = {}
        for row in rows:
            alike.setdefault(tuple(row), []).append(list(row.values()))
            self._last.update(row)
            if not row.keys() <= self._first.keys():
                self._first = {**row, **self._first}
        for names, table in alike.items():
            self._merge(names, table)

    def _merge(self, names: tuple[str, ...], table: list[list[float]]) -> None:
        """Rows of the same metrics; what is not finite takes no part. Centred on a value of its own, no sum cancels."""
        import numpy as np

        values = np.array(table, dtype=np.float64)
        good = np.isfinite(values)
        count = good.sum(0)
        safe = np.where(good, values, values[good.argmax(0), np.arange(len(names))])
        with np.errstate(all="ignore"):
            some = np.maximum(count, 1)
            mean = safe[0] + np.where(good, safe - safe[0], 0.0).sum(0) / some
            mean = np.where(np.isfinite(mean), mean, np.where(good, safe / some, 0.0).sum(0))  # of 1e308 and -1e308
            away = np.where(good, safe - mean, 0.0)
            found = (count, mean, (away * away).sum(0), safe.min(0), safe.max(0))
        for name, known, *rest in zip(names, *(part.tolist() for part in found), strict=True):
            held = self._moments.get(name) or self._moments.setdefault(name, _Moments())
            held.nonfinite += len(table) - known
            if known:
                held.merge(known, *rest)
