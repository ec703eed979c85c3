"""A quantile of everything seen, without keeping it."""

from __future__ import annotations

from bisect import insort

from rldk.core.errors import UsageError
from rldk.core.stats.base import ScalarStatistic
from rldk.core.stats.quantiles import quantile_of_sorted

__all__ = ["P2Quantile"]

ONE = 1.0 - 1e-9  # one rank; for a q such as 0.1 it is hit exactly again and again, but for a rounding error


class P2Quantile(ScalarStatistic):
    """Estimate of the quantile `q` of all values seen, from five markers: the P² algorithm.

    The markers stand at the minimum, at the quantiles q/2, q and (1+q)/2, and at the maximum. Each value pushes up the
    ranks of the markers above it; a marker whose rank is one or more away from where it should be moves by one, its
    height following a parabola through its neighbours. Exact up to five values.

    R. Jain and I. Chlamtac, *The P² algorithm for dynamic calculation of quantiles and histograms without storing
    observations*, Communications of the ACM 28(10), 1985.
    """

    __slots__ = ("_heights", "_ranks", "count", "q")
    parameters = ("q",)
    q: float
    count: int
    _heights: list[float]
    _ranks: list[int]

    def __init__(self, q: float) -> None:
        if not 0.0 < q < 1.0:
            raise UsageError(f"Expected `q` to be between 0 and 1, both excluded, got {q!r}.")
        self.q = float(q)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.count = 0
        self._heights = []
        self._ranks = [0, 1, 2, 3, 4]

    def _add(self, value: float) -> None:
        self.count += 1
        heights, ranks = self._heights, self._ranks
        if self.count <= 5:
            insort(heights, value)
            return
        if value < heights[0]:
            heights[0] = value
        elif value > heights[4]:
            heights[4] = value
        if value < heights[1]:
            ranks[1] += 1
        if value < heights[2]:
            ranks[2] += 1
        if value < heights[3]:
            ranks[3] += 1
        ranks[4] = last = self.count - 1
        q = self.q
        if not -ONE < (lag := last * q * 0.5 - ranks[1]) < ONE:
            self._settle(1, lag)
        if not -ONE < (lag := last * q - ranks[2]) < ONE:
            self._settle(2, lag)
        if not -ONE < (lag := last * (1.0 + q) * 0.5 - ranks[3]) < ONE:
            self._settle(3, lag)

    def _settle(self, i: int, lag: float) -> None:
        """Move marker `i` by one rank up or down to where it should be, if there is room."""
        ranks = self._ranks
        rank = ranks[i]
        if lag > 0.0:
            if ranks[i + 1] - rank > 1:
                self._heights[i] = self._moved(i, 1)
                ranks[i] = rank + 1
        elif rank - ranks[i - 1] > 1:
            self._heights[i] = self._moved(i, -1)
            ranks[i] = rank - 1

    def _moved(self, i: int, step: int) -> float:
        """Height of marker `i` one rank up or down: on the parabola, or on the line where the parabola overshoots."""
        low, height, high = self._heights[i - 1 : i + 2]
        before, rank, after = self._ranks[i - 1 : i + 2]
        below, above = rank - before, after - rank
        up, down = (high - height) / above, (height - low) / below
        parabola = height + step / (after - before) * ((below + step) * up + (above - step) * down)
        if low < parabola < high:
            return parabola
        if step > 0:
            return height + (high / above - height / above)
        return height - (height / below - low / below)

    @property
    def value(self) -> float:
        """The estimate; NaN while nothing was seen."""
        return self._heights[2] if self.count > 5 else quantile_of_sorted(self._heights, self.q)
