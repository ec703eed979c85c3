"""What distinguishes one healthy run from another: drawn by the seed, or pinned by the caller.

The ranges are wide on purpose. They come from the meaning of the quantities and from many real runs; no single run is copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from rldk.testing.streams.noise import Noise

__all__ = ["PRIORS", "PROFILES", "Draw", "Traits", "draw_traits"]

T = TypeVar("T")


class Draw:
    """A few ways to draw a trait."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def between(self, low: float, high: float) -> float:
        return float(self._rng.uniform(low, high))

    def scale(self, low: float, high: float) -> float:
        """Log-uniform between two values."""
        return math.exp(self.between(math.log(low), math.log(high)))

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def pick(self, *options: T) -> T:
        return options[int(self._rng.integers(len(options)))]


def _common(draw: Draw) -> dict[str, Any]:
    entropy = draw.scale(0.4, 2.2)
    length = draw.scale(30.0, 500.0)
    length_end = length * draw.scale(0.4, 2.0)
    return {
        "groups": draw.pick(8, 16, 32, 64, 64), "group_size": 1,
        "reward_kind": "score", "reward_start": draw.between(-2.0, 1.0), "reward_end": 0.0,
        "reward_spread": draw.scale(0.5, 2.0), "reward_scale": 1.0, "reward_offset": 0.0, "reward_std_of": "batch",
        "learn_time": draw.scale(0.1, 0.4), "curve": draw.pick("early", "early", "late"), "dips": draw.pick(0, 0, 0, 1, 2),
        "rho": draw.pick(draw.between(0.0, 0.3), draw.between(0.0, 0.3), draw.between(0.3, 0.9)),
        "tail": draw.scale(3.5, 30.0), "wander": draw.between(0.03, 0.15),
        "entropy_start": entropy, "entropy_end": min(entropy * draw.scale(0.4, 1.8), 3.0),
        "entropy_noise": draw.between(0.02, 0.12), "entropy_bumps": int(draw.chance(0.1)),
        "length_start": length, "length_end": length_end, "length_spread": draw.between(0.2, 0.6),
        "length_cap": int(max(length, length_end) * draw.between(1.6, 4.0)), "length_corr": draw.between(-0.2, 0.15),
        "excursions": int(draw.chance(0.1)), "at_cap": False,
        "kl_logged": True, "kl_level": 6.0, "kl_start": 0.0, "kl_time": draw.between(0.03, 0.09),
        "kl_noise": draw.between(0.05, 0.35), "kl_spikes": draw.pick(0.0, 0.001, 0.003), "kl_coef": draw.scale(0.03, 0.3),
        "adaptive": False, "controller_rate": draw.scale(0.01, 0.06),
        "step_size": draw.scale(5e-4, 1.2e-2), "active": draw.scale(0.03, 0.2), "updates": 4,
        "lr": draw.scale(5e-7, 2e-5), "warmup": draw.pick(0.0, 0.03, 0.1),
        "schedule": draw.pick("linear", "linear", "cosine", "constant"),
        "grad_scale": draw.scale(0.2, 4.0), "grad_end": draw.scale(0.4, 2.5),
        "grad_noise": draw.between(0.12, 0.4), "grad_spikes": draw.pick(0.0, 0.002, 0.006),
        "zero_grads": False, "value_start": draw.between(1.0, 1.4), "value_floor": draw.between(0.4, 0.8),
        "whiten": draw.chance(0.5), "log_every": 1, "gen_every": 1, "held_out": draw.pick(0, 0, 20),
        "seconds": draw.scale(2.0, 60.0), "time_noise": draw.scale(0.02, 0.2),
        "time_spikes": draw.pick(0.0, 0.003, 0.01), "memory_gb": draw.between(20.0, 68.0),
        "mismatch": draw.pick(0.0, draw.scale(5e-4, 2e-2)),
    }  # fmt: skip


def _shares(draw: Draw, traits: dict[str, Any]) -> None:
    """Rewards that are shares of right answers: where they start and where they end."""
    start = draw.between(0.08, 0.6)
    traits["reward_start"] = start
    traits["reward_end"] = start + (0.97 - start) * draw.between(0.3, 0.95)
    traits["reward_scale"] = draw.pick(1.0, 1.0, 2.0)
    traits["reward_offset"] = draw.pick(0.0, 0.0, 0.0, -1.0)


def _ppo(draw: Draw) -> dict[str, Any]:
    traits = _common(draw)
    traits["adaptive"] = True
    traits["kl_start"] = draw.pick(0.0, 0.0, 0.0, 0.0, 1.0)
    traits["reward_kind"] = draw.pick("score", "score", "score", "graded", "binary")
    if traits["reward_kind"] == "score":
        traits["reward_end"] = traits["reward_start"] + traits["reward_spread"] * draw.between(0.8, 3.0)
    else:
        _shares(draw, traits)
    return traits


def _ppo_token(draw: Draw) -> dict[str, Any]:
    traits = _ppo(draw)
    traits.update(adaptive=False, kl_level=draw.scale(5e-3, 0.15), kl_coef=draw.scale(1e-3, 0.05))
    traits["kl_noise"] = draw.between(0.1, 0.4)
    return traits


def _grpo(draw: Draw) -> dict[str, Any]:
    traits = _common(draw)
    entropy = draw.pick(draw.scale(0.08, 1.0), draw.scale(0.08, 1.0), draw.scale(0.08, 1.0), 0.02 * draw.scale(0.8, 1.5))
    length = draw.scale(12.0, 500.0)
    length_end = length * draw.pick(draw.scale(0.5, 2.5), draw.scale(0.5, 2.5), draw.scale(0.12, 0.5))
    traits.update(
        groups=draw.pick(2, 4, 4, 8), group_size=draw.pick(4, 8, 8), reward_kind=draw.pick("binary", "binary", "graded", "mixed"),
        reward_std_of=draw.pick("group", "batch"), dips=draw.pick(0, 0, 1, 2, 3),
        entropy_start=entropy, entropy_end=entropy * draw.scale(0.35, 2.3), entropy_noise=draw.between(0.05, 0.4),
        length_start=length, length_end=length_end, length_cap=int(max(length, length_end) * draw.between(1.5, 5.0)) + 4,
        at_cap=draw.chance(0.06), kl_logged=draw.chance(0.65), kl_level=draw.scale(2e-3, 0.25), kl_time=draw.between(0.05, 0.4),
        kl_start=draw.pick(0.0, 0.0, 0.0, 0.0, 0.0, 1.0), kl_noise=draw.between(0.1, 0.9), kl_spikes=draw.pick(0.0, 0.002, 0.008),
        kl_coef=draw.scale(1e-3, 0.1), step_size=draw.scale(5e-6, 3e-3), active=draw.between(0.02, 0.2),
        updates=draw.pick(1, 1, 2, 4),
        grad_scale=draw.pick(draw.scale(0.1, 8.0), draw.scale(0.1, 8.0), draw.scale(0.1, 8.0), draw.scale(0.002, 0.02)),
        grad_noise=draw.scale(0.2, 1.0), zero_grads=draw.chance(0.2), time_spikes=draw.pick(0.0, 0.005, 0.015),
        log_every=draw.pick(1, 1, 1, 1, 1, 1, 1, 5, 10, 20), gen_every=draw.pick(1, 1, 1, 1, 1, 1, 1, 4),
    )  # fmt: skip
    _shares(draw, traits)
    if draw.chance(0.12):  # good from the start, with nothing left to learn
        traits.update(reward_start=0.85, reward_end=0.85 + draw.between(0.0, 0.06), reward_kind="binary")
    return traits


def _dpo(draw: Draw) -> dict[str, Any]:
    traits = _common(draw)
    traits.update(reward_end=draw.scale(0.4, 3.0), reward_spread=draw.between(0.6, 1.5), updates=1, lr=draw.scale(1e-7, 5e-6))
    traits.update(grad_scale=draw.scale(1.0, 30.0), kl_coef=draw.pick(0.01, 0.1, 0.1, 0.3), mismatch=0.0, held_out=0)
    return traits


PRIORS: dict[str, Callable[[Draw], dict[str, Any]]] = {"ppo": _ppo, "ppo_token": _ppo_token, "grpo": _grpo, "dpo": _dpo}
"""Profile -> how its traits are drawn."""


PROFILES: dict[str, str] = {
    "ppo": "PPO with a value function, KL summed over the sequence, adaptive KL coefficient with a target",
    "ppo_token": "PPO with a value function, KL per token, fixed KL coefficient",
    "grpo": "GRPO: groups of responses, no value function, KL per token or none",
    "dpo": "preference training on pairs",
}
"""The kinds of run that can be simulated."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The traits of a healthy run. Times are shares of the run, rates are shares of its steps."""

    groups: int  # prompts in a batch
    group_size: int  # responses to each
    reward_kind: str  # score: of a reward model; binary: right or wrong; graded: between 0 and 1; mixed: both
    reward_start: float  # a mean score, or for the other kinds the share of right answers
    reward_end: float
    reward_spread: float
    reward_scale: float
    reward_offset: float
    reward_std_of: str  # batch, or group: what `reward_std` is the spread of
    learn_time: float
    curve: str  # early: fastest at the start; late: flat, then takes off
    dips: int  # deep falls of the reward that recover
    rho: float  # autocorrelation of the noise
    tail: float  # degrees of freedom of the noise
    wander: float  # the size of slow drifts
    entropy_start: float
    entropy_end: float
    entropy_noise: float
    entropy_bumps: int
    length_start: float
    length_end: float
    length_spread: float
    length_cap: int
    length_corr: float  # of length with reward, where nothing is wrong
    excursions: int  # how often lengths shoot up and come back
    at_cap: bool  # every response is cut off, and the reward is fine
    kl_logged: bool
    kl_level: float  # where the KL settles; the target of an adaptive coefficient
    kl_start: float  # share of that level on the first step
    kl_time: float
    kl_noise: float
    kl_spikes: float
    kl_coef: float
    adaptive: bool
    controller_rate: float  # batch over horizon
    step_size: float  # kl_update at the full learning rate
    active: float  # share of tokens that move at all
    updates: int  # a batch; with one the ratio is 1 and nothing is ever clipped
    lr: float
    warmup: float
    schedule: str
    grad_scale: float
    grad_end: float  # as a share of the scale
    grad_noise: float
    grad_spikes: float
    zero_grads: bool  # the norm of the last micro-batch only, 0 where its group has no spread
    value_start: float
    value_floor: float
    whiten: bool
    log_every: int
    gen_every: int  # generation metrics in every n-th row
    held_out: int  # a held-out reward in every n-th row, 0 for none
    seconds: float
    time_noise: float
    time_spikes: float
    memory_gb: float
    mismatch: float  # trainer against sampler; 0 where it is not logged

    @property
    def batch(self) -> int:
        """Responses in a batch."""
        return self.groups * self.group_size


def draw_traits(profile: str, seed: int, pins: dict[str, Any]) -> Traits:
    """The traits of a seed, with some of them pinned; pinning one changes no other."""
    if profile not in PROFILES:
        raise ValueError(f"Expected `profile` to be one of {sorted(PROFILES)}, got {profile!r}.")
    known = [field.name for field in fields(Traits)]
    for name in pins:
        if name not in known:
            raise ValueError(f"Expected a trait to be one of {known}, got {name!r}.")
    draw = Draw(Noise(seed, 0).rng(f"traits of {profile}"))
    return replace(Traits(**PRIORS[profile](draw)), **pins)
