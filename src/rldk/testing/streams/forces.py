"""How a fault acts on a run: through the forces that drive it, step by step."""

from __future__ import annotations

import numpy as np

from rldk.testing.streams.noise import FloatArray, Noise
from rldk.testing.streams.traits import Traits

__all__ = ["Forces", "Phase"]


class Forces:
    """What pushes a run away from health, one value per step; by default nothing.

    The first group multiplies, the second adds. `x_pull` draws the state `x` towards `x_goal` by that share each step;
    the goals of entropy and length are logarithms of the factor by which they leave the healthy course.
    """

    def __init__(self, steps: int) -> None:
        def ones() -> FloatArray:
            return np.ones(steps)

        def zeros() -> FloatArray:
            return np.zeros(steps)

        self.lr = ones()  # the learning rate
        self.learn = ones()  # what a step teaches
        self.push = ones()  # away from the reference
        self.step = ones()  # the size of an update, in standard deviations of the log-ratio
        self.grad = ones()
        self.value_grad = ones()
        self.spread = ones()  # of the reward
        self.seconds = ones()
        self.mismatch = ones()
        self.control = ones()  # the controller's gain

        self.skill_pull, self.skill_goal = zeros(), zeros()
        self.entropy_pull, self.entropy_goal = zeros(), zeros()
        self.length_pull, self.length_goal = zeros(), zeros()
        self.drift_pull, self.drift_goal = zeros(), zeros()  # the KL itself, as a multiple of its level
        self.value = zeros()  # growth of the value error's logarithm in a step
        self.hack = zeros()  # unearned reward, in standard deviations
        self.endless = zeros()  # share of responses that do not end
        self.corr = zeros()  # of length with reward
        self.advantage = zeros()  # bias, in spreads
        self.leak = zeros()  # GiB
        self.kl_shift = zeros()  # error of the KL's estimate, as a share of it
        self.loss = zeros()  # added to the losses
        self.ratio = zeros()  # logarithm of the ratio's largest values
        self.frozen = zeros()  # 1: the coefficient does not move
        self.delay = zeros()  # steps until the coefficient takes effect
        self.dead = zeros()  # 1: every response scores the same
        self.broken = zeros()  # 1: the weights are not finite; 2: the loss is hidden behind 0
        self.margin = zeros()  # growth of the preference margin's logarithm in a step
        self.rewind = zeros()  # steps by which the counter falls back


class Phase:
    """The time course of a fault: its onset, its strength, and its random numbers."""

    def __init__(self, noise: Noise, name: str, onset: int, severity: float, traits: Traits) -> None:
        self.on = np.arange(1, noise.steps + 1) >= onset
        self.since = np.where(self.on, np.arange(1, noise.steps + 1) - onset + 1.0, 0.0)
        self.severity = severity
        self.traits = traits
        self._noise = noise
        self._name = name
        self._rng = noise.rng(f"fault {name}")

    def draw(self, low: float, high: float) -> float:
        """A number that differs from seed to seed."""
        return float(self._rng.uniform(low, high))

    def coin(self) -> bool:
        """True for half of the seeds."""
        return bool(self._rng.random() < 0.5)

    def ramp(self, width: float) -> FloatArray:
        """From 0 at the onset to 1 after `width` steps, smoothly."""
        share = np.clip(self.since / width, 0.0, 1.0)
        return share * share * (3.0 - 2.0 * share)

    def rise(self, time: float) -> FloatArray:
        """From 0 at the onset towards 1, most of the way within `time` steps."""
        return 1.0 - np.exp(-self.since / time)

    def toward(self, factor: float | FloatArray, width: float) -> FloatArray:
        """From 1 at the onset to `factor` after `width` steps, evenly on a logarithmic scale."""
        return np.asarray(np.power(factor, self.severity * self.ramp(width)))

    def bursts(self, name: str, rate: FloatArray) -> FloatArray:
        """0, and 0 to 1 in a share `rate` of the steps after the onset."""
        hit = self._noise.uniform(f"{self._name} hits {name}") < rate
        return np.where(hit & self.on, self._noise.uniform(f"{self._name} heights {name}"), 0.0)
