"""What sets one healthy run apart from another: drawn by the seed, or pinned by whoever asks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from rldk.testing.streams.noise import Noise
from rldk.testing.streams.priors import PRIORS, Draw

__all__ = ["PROFILES", "Traits", "draw_traits"]

PROFILES: dict[str, str] = {
    "ppo": "PPO with a value function, KL summed over the sequence, adaptive KL coefficient with a target",
    "ppo_token": "PPO with a value function, KL per token, fixed KL coefficient",
    "grpo": "GRPO: groups of responses, no value function, KL per token or none",
    "dpo": "preference training on pairs",
}
"""The kinds of run that can be simulated."""


@dataclass(frozen=True, slots=True)
class Traits:
    """The character of a healthy run. Times are shares of the run, rates shares of its steps."""

    groups: int  # prompts in a batch
    group_size: int  # responses to each
    reward_kind: str  # score: a reward model's; binary: right or wrong; graded: between 0 and 1; mixed: both
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
    wander: float  # how far slow drifts go
    entropy_start: float
    entropy_end: float
    entropy_noise: float
    entropy_bumps: int
    length_start: float
    length_end: float
    length_spread: float
    length_cap: int
    length_corr: float  # of length with reward, where nothing is wrong
    excursions: int  # times when lengths shoot up and come back
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
    gen_every: int  # generation metrics in every so-manieth row
    held_out: int  # a held-out reward in every so-manieth row, 0 for none
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
