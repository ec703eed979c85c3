"""What a log of few rows shows: its first twenty rows as they are, where medians of five and means of twenty come too late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

__all__ = ["Fall", "fall_of", "noise_of"]

FEWEST = 6
DIFFERENT = 0.6  # share of rows that must differ: of zeros and ones, three zeros in a row are no fall
FEW = 4.0  # the noise is raised by this over the number of rows, since few rows underestimate it


@dataclass(frozen=True, slots=True)
class Fall:
    """How far the last rows are below the best two in a row, and what that is beside the gain and the noise of a row."""

    best: float
    now: float
    gain: float
    noise: float

    @property
    def lost(self) -> float:
        return self.best - self.now

    @property
    def share(self) -> float:
        """The share of the gain that was lost; more than 1 if the last rows are below the first two."""
        return self.lost / self.gain if self.gain > 0.0 else inf

    @property
    def noises(self) -> float:
        return self.lost / self.noise if self.noise > 0.0 else inf


def fall_of(rows: Sequence[float], last: int = 3) -> Fall | None:
    """The fall to the last so many of these rows; `None` if there is none, or if they are too few or too much alike."""
    if len(rows) < max(FEWEST, last + 2) or len(set(rows)) < DIFFERENT * len(rows):
        return None
    now = max(rows[-last:])
    best = max(map(min, rows[: -last - 1], rows[1:-last]))
    if not best > now:
        return None
    return Fall(best, now, best - min(rows[:2]), noise_of(rows))


def noise_of(rows: Sequence[float]) -> float:
    """The standard deviation of a row about a smooth curve: from the distance of each row from the middle of its neighbours."""
    apart = [abs(here - 0.5 * (before + after)) for before, here, after in zip(rows, rows[1:], rows[2:], strict=False)]
    return max(1.4826 * median(apart), sum(apart) / len(apart)) / float(1.5**0.5) * (1.0 + FEW / len(rows))
