"""Do two series move together?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite, nan, sqrt
from operator import mul

from rldk.core.errors import UsageError
from rldk.core.stats.pairs import PairWindow

__all__ = ["RollingCorrelation", "rank_correlation"]


class RollingCorrelation(PairWindow):
    """Pearson's correlation of two series over their last `window` pairs.

    A series against its own past gives the autocorrelation at that lag.
    """

    __slots__ = ()

    @property
    def correlation(self) -> float:
        """Pearson's r; NaN for fewer than two pairs, or where one of the series is constant."""
        return _pearson(self._sxx, self._sxy, self._syy)


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Spearman's rho: Pearson's correlation of the ranks, equal values sharing their mean rank. O(n log n).

    Pairs in which one side is NaN are left out; an infinite value has a rank like any other. NaN for fewer than two
    pairs, or where one of the series is constant.
    """
    if len(xs) != len(ys):
        raise UsageError(f"Expected `xs` and `ys` to be of one length, got {len(xs)} and {len(ys)}.")
    if not isfinite(sum(xs)) or not isfinite(sum(ys)):  # some may be NaN
        pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if x == x and y == y]
        xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    if len(xs) < 2:
        return nan
    rx, ry = _ranks(xs), _ranks(ys)
    return _pearson(sum(map(mul, rx, rx)), sum(map(mul, rx, ry)), sum(map(mul, ry, ry)))


def _pearson(sxx: float, sxy: float, syy: float) -> float:
    product = sxx * syy
    divisor = (
        sqrt(product) if 1e-280 < product < 1e300 else sqrt(sxx) * sqrt(syy)
    )  # the first rounds once, and can overflow
    if not divisor > 0.0:
        return nan
    r = sxy / divisor
    return 1.0 if r > 1.0 else -1.0 if r < -1.0 else r


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks as their distances from the middle one; equal values share the mean of theirs."""
    often = Counter(values)
    shared, place = {}, -len(values) / 2
    for value in sorted(often):
        times = often[value]
        shared[value] = place + times / 2
        place += times
    return list(map(shared.__getitem__, values))
