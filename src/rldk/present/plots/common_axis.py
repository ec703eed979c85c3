"""One x axis for runs of very different lengths: a logarithmic one, on which a long run has many points at its beginning too."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import Source, Span

__all__ = ["Beginning", "differ_in_length", "long_runs"]

_FAR = 5.0
_SHARES = (4, 16, 64)


def differ_in_length(lengths: Sequence[float]) -> bool:
    """Whether the longest run would squeeze the shorter ones on an axis of steps: five times the lower quartile or more.

    A logarithmic axis keeps a step of one run above the same step of another, which a share of each run's length would not.
    """
    return any(long_runs(lengths))


def long_runs(lengths: Sequence[float]) -> list[bool]:
    """Which runs are so long that others would be squeezed beside them."""
    known = [length for length in lengths if length > 0]
    quartile = float(np.quantile(known, 0.25)) if known else 0.0
    return [quartile > 0 and length >= _FAR * quartile for length in lengths]


class Beginning:
    """A run with more points at its beginning, where it is drawn beside shorter ones."""

    def __init__(self, source: Source, start: float, end: float) -> None:
        self._source = source
        self._spans: list[Span] = [(start, start + (end - start) / share) for share in _SHARES]
        self.reductions: dict[str, str] = getattr(source, "reductions", {})

    @property
    def run_id(self) -> str:
        return self._source.run_id

    @property
    def axis(self) -> str:
        return self._source.axis

    def names(self) -> Collection[str]:
        return self._source.names()

    def places(self, steps: FloatArray) -> FloatArray:
        return self._source.places(steps)

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        if span is not None:
            return self._source.points(names, buckets, span)
        parts = [self._source.points(names, max(1, buckets // 2), one) for one in (*self._spans, None)]
        x = np.concatenate([part[0] for part in parts])
        _, kept = np.unique(x, return_index=True)
        return x[kept], [np.concatenate([part[1][place] for part in parts])[kept] for place in range(len(names))]
