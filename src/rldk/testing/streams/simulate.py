"""Simulates a run of a profile from a seed, with or without a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rldk.core.event import Event
from rldk.testing.streams.batch import Batch, sample
from rldk.testing.streams.columns import Columns, to_events
from rldk.testing.streams.faults import FAULTS, Fault
from rldk.testing.streams.forces import Forces, Phase
from rldk.testing.streams.latent import evolve
from rldk.testing.streams.noise import FloatArray, Noise
from rldk.testing.streams.trainer_metrics import dpo_columns, grpo_columns, ppo_columns
from rldk.testing.streams.traits import Traits, draw_traits

__all__ = ["Stream", "faulty", "healthy", "simulate", "twin"]

_SURVIVES = (
    "lr",
    "target_kl",
    "kl_coef",
    "step_time",
    "tokens_",
    "gpu_",
    "memory_",
    "num_",
    "length_",
    "rollout_",
    "truncated_",
    "eos_",
    "reward_",
    "eval_",
)
"""The metrics that stay finite when the weights are not."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A simulated run: its events, what it was made of, and the responses behind the averages."""

    events: list[Event]
    profile: str
    seed: int
    traits: Traits
    fault: str | None = None
    onset: int | None = None
    batch: Batch | None = None

    def response_data(self, step: int) -> list[dict[str, float]]:
        """Length and reward of each response of a step (counted from 1), as `update(response_data=…)` takes them."""
        if self.batch is None:
            return []
        pairs = zip(self.batch.lengths[step - 1].tolist(), self.batch.rewards[step - 1].tolist(), strict=True)
        return [{"length": length, "reward": reward} for length, reward in pairs]


def _find(fault: str) -> Fault:
    if fault not in FAULTS:
        raise ValueError(f"Expected `fault` to be one of {sorted(FAULTS)}, got {fault!r}.")
    return FAULTS[fault]


def _break(columns: Columns, broken: FloatArray) -> None:
    """Insert non-finite values where the weights are not finite; a filter may replace the loss by 0."""
    for name, values in columns.items():
        if name in ("grad_norm", "policy_grad_norm"):
            columns[name] = np.where(broken > 0, np.nan, values)
        elif name == "loss":
            columns[name] = np.where(broken == 1, np.nan, np.where(broken == 2, 0.0, values))
        elif not name.startswith(_SURVIVES):
            columns[name] = np.where(broken == 1, np.nan, values)


def simulate(
    profile: str = "ppo",
    steps: int = 1000,
    seed: int = 0,
    fault: str | None = None,
    onset: int | None = None,
    severity: float = 1.0,
    **traits: Any,
) -> Stream:
    """Simulate a run of `steps` steps, healthy or with a fault that begins at step `onset`; `traits` are pinned."""
    if steps < 2:
        raise ValueError(f"Expected `steps` to be at least 2, got {steps!r}.")
    chosen = _find(fault) if fault is not None else None
    if chosen is not None and profile not in chosen.profiles:
        raise ValueError(f"Expected `profile` of fault {fault!r} to be one of {list(chosen.profiles)}, got {profile!r}.")
    character = draw_traits(profile, seed, {**(chosen.traits if chosen else {}), **traits})
    noise = Noise(seed, steps)
    forces = Forces(steps)
    if chosen is not None:
        onset = onset if onset is not None else min(chosen.onset, max(1, round(0.4 * steps)))
        chosen.apply(forces, Phase(noise, chosen.name, onset, severity, character))
    latent = evolve(character, forces, noise)
    batch = None if profile == "dpo" else sample(character, latent, forces, noise)
    if batch is None:
        columns = dpo_columns(character, latent, forces, noise)
    else:
        columns = (grpo_columns if profile == "grpo" else ppo_columns)(character, latent, batch, forces, noise)
    if forces.broken.any():
        _break(columns, forces.broken)
    name = f"{profile}-{fault or 'healthy'}-{seed}"
    events = to_events(character, columns, forces, name, "sequence" if profile == "ppo" else "token")
    return Stream(events, profile, seed, character, fault, onset, batch)


def healthy(profile: str = "ppo", steps: int = 1000, seed: int = 0, **traits: Any) -> list[Event]:
    """The events of a healthy run. The seed draws its traits; any of them can be pinned (`log_every=5`)."""
    return simulate(profile, steps, seed, **traits).events


def faulty(
    fault: str,
    profile: str | None = None,
    steps: int = 1000,
    onset: int | None = None,
    seed: int = 0,
    severity: float = 1.0,
    **traits: Any,
) -> list[Event]:
    """The events of a run that goes wrong at step `onset`; before that step they are those of its `twin`."""
    return simulate(profile or _find(fault).profile, steps, seed, fault, onset, severity, **traits).events


def twin(fault: str, profile: str | None = None, steps: int = 1000, seed: int = 0, **traits: Any) -> list[Event]:
    """The healthy run with the same random numbers and traits as `faulty(fault, …)`."""
    chosen = _find(fault)
    return healthy(profile or chosen.profile, steps, seed, **{**chosen.traits, **traits})
