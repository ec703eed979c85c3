"""The random numbers of a simulated run: streams with names, so that a new metric or fault changes no other draw."""

from __future__ import annotations

import math
import zlib
from itertools import accumulate

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "Noise", "autoregress", "follow"]

FloatArray = npt.NDArray[np.float64]

_LIMIT = 9.0
"""Unit noise beyond this is cut: the exponential of a student-t with 3 degrees of freedom could otherwise be 1e40."""


def autoregress(shocks: FloatArray, rho: float) -> FloatArray:
    """An AR(1) series of unit variance from shocks of unit variance."""
    if rho == 0.0:
        return shocks
    gain = math.sqrt(1.0 - rho * rho)
    return np.array(list(accumulate(shocks.tolist(), lambda level, shock: rho * level + gain * shock)))


def follow(goal: FloatArray, rate: float, start: float) -> FloatArray:
    """A series that follows `goal`, by a share `rate` of the distance each step."""
    levels = accumulate(goal.tolist(), lambda level, wanted: level + rate * (wanted - level), initial=start)
    return np.array(list(levels)[1:])


class Noise:
    """The draws of one run. Each name is a separate stream, determined by the seed, and should be used once."""

    def __init__(self, seed: int, steps: int) -> None:
        self.seed = seed
        self.steps = steps

    def rng(self, name: str) -> np.random.Generator:
        """The generator of a name."""
        return np.random.Generator(np.random.SFC64([self.seed, zlib.crc32(name.encode())]))

    def normal(self, name: str, *shape: int) -> FloatArray:
        """Plain unit noise, one value per step or a row of them."""
        return self.rng(name).standard_normal((self.steps, *shape))

    def uniform(self, name: str, *shape: int) -> FloatArray:
        """Values in [0, 1), one value or one row per step."""
        return self.rng(name).random((self.steps, *shape))

    def series(self, name: str, rho: float = 0.0, tail: float = 30.0) -> FloatArray:
        """Unit noise with memory `rho` and the tails of a student-t with `tail` degrees of freedom."""
        shocks = self.rng(name).standard_t(tail, self.steps) * math.sqrt((tail - 2.0) / tail)
        return np.clip(autoregress(shocks, rho), -_LIMIT, _LIMIT)

    def wander(self, name: str, time: float) -> FloatArray:
        """Slow unit noise with a correlation time of about `time` steps."""
        return self.series(name, rho=math.exp(-1.0 / max(time, 1.0)))

    def factor(self, name: str, sigma: float, rho: float = 0.0, tail: float = 30.0) -> FloatArray:
        """Multiplicative noise of mean near 1 for what cannot be negative."""
        return np.asarray(np.exp(np.clip(sigma * self.series(name, rho, tail), -6.0, 3.0) - 0.5 * sigma * sigma))

    def spikes(self, name: str, rate: float | FloatArray, low: float, high: float) -> FloatArray:
        """1 nearly everywhere; in a share `rate` of the steps, independently, a factor between `low` and `high`."""
        rng = self.rng(name)
        hit = rng.random(self.steps) < rate
        height = np.exp(rng.uniform(math.log(low), math.log(high), self.steps))
        return np.where(hit, height, 1.0)

    def bumps(self, name: str, count: int, width: tuple[float, float], height: tuple[float, float]) -> FloatArray:
        """0, and `count` passing episodes: a quick rise, a slower way back. A run recovers from them."""
        rng = self.rng(name)
        time = np.arange(self.steps, dtype=np.float64)
        total = np.zeros(self.steps)
        for _ in range(count):
            centre = rng.uniform(0.08, 0.9) * self.steps
            span = rng.uniform(*width)
            away = time - centre
            total += rng.uniform(*height) * np.exp(-0.5 * np.square(away / np.where(away < 0, 0.35 * span, 0.65 * span)))
        return total
