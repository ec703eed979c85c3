"""Columns that every kind of run has: time, memory, lengths, and how a run of rows becomes events."""

from __future__ import annotations

import math

import numpy as np

from rldk.core.event import Event
from rldk.testing.streams.batch import Batch, rank_correlation
from rldk.testing.streams.forces import Forces
from rldk.testing.streams.latent import Latent
from rldk.testing.streams.noise import FloatArray, Noise
from rldk.testing.streams.traits import Traits

__all__ = ["Columns", "entropy", "gradient", "machine", "responses", "spikes", "to_events"]

Columns = dict[str, FloatArray]

_LAST = frozenset(
    {"lr", "grad_norm", "policy_grad_norm", "value_grad_norm", "kl_coef", "num_tokens", "gpu_memory_gb", "memory_usage"}
)
"""The metrics of which a row for several steps has the last value; the others are averaged."""

_GENERATION = ("reward_", "rollout_length", "length_", "truncated_", "eos_", "num_tokens")
"""The metrics that are known only when new responses were generated."""

_START = 1_700_000_000.0
_MEMORY = 80.0


def responses(traits: Traits, batch: Batch) -> Columns:
    """Rewards and lengths of the batch."""
    rewards, lengths = batch.rewards, batch.lengths
    cut = batch.cut.mean(axis=1)
    return {
        "reward_mean": rewards.mean(axis=1),
        "reward_std": rewards.std(axis=1, ddof=1),
        "rollout_length_mean": lengths.mean(axis=1),
        "rollout_length_std": lengths.std(axis=1, ddof=1),
        "truncated_frac": cut,
        "length_reward_corr": rank_correlation(lengths, rewards, traits.reward_kind in ("binary", "mixed")),
    }


def spikes(traits: Traits, noise: Noise) -> FloatArray:
    """Single bad batches, more of them during warm-up, with an effect on the loss and the gradients."""
    early = np.exp(-np.arange(noise.steps) / (0.01 * noise.steps))
    return noise.spikes("bad batches", traits.grad_spikes * (1.0 + 8.0 * early), 3.0, 20.0)


def gradient(traits: Traits, latent: Latent, forces: Forces, noise: Noise, name: str) -> FloatArray:
    """A gradient norm: proportional noise, single spikes, a slow drift, and smaller values where the policy hardly explores."""
    done = np.arange(noise.steps) / noise.steps
    sway = np.exp(
        0.2 * noise.wander(f"{name} drift", 0.1 * noise.steps) + math.log(traits.grad_end) * (1.0 - np.exp(-3.0 * done))
    )
    jitter = noise.factor(name, traits.grad_noise, traits.rho * 0.5, traits.tail)
    return traits.grad_scale * sway * jitter * spikes(traits, noise) * forces.grad * np.maximum(latent.activity, 1e-4)


def entropy(traits: Traits, latent: Latent, noise: Noise) -> FloatArray:
    """The entropy as measured on the batch."""
    jitter = noise.factor("entropy noise", traits.entropy_noise, 0.5 * traits.rho, traits.tail)
    return np.minimum(latent.entropy * jitter, 12.0)


def machine(traits: Traits, forces: Forces, noise: Noise, tokens: FloatArray, longest: FloatArray) -> Columns:
    """Time and memory, which follow the lengths."""
    usual = traits.batch * traits.length_start
    load = 0.4 + 0.4 * tokens / usual + 0.2 * longest / traits.length_cap
    hiccups = noise.spikes("hiccups", traits.time_spikes, 1.5, 4.0)
    seconds = traits.seconds * load * noise.factor("seconds", traits.time_noise, 0.2, traits.tail) * hiccups * forces.seconds
    seconds *= np.exp(0.5 * traits.time_noise * noise.wander("load", 0.1 * noise.steps))
    seconds[0] *= 3.0  # compilation, caches
    peak = np.maximum.accumulate(longest / traits.length_cap)
    memory = np.minimum(traits.memory_gb * (1.0 + 0.1 * peak) + forces.leak, 0.995 * _MEMORY)
    memory[: min(2, len(memory))] *= 0.985
    return {
        "step_time": seconds,
        "tokens_per_second": tokens / seconds,
        "gpu_memory_gb": memory,
        "memory_usage": memory / _MEMORY,
        "num_tokens": np.cumsum(tokens),
    }


def _thin(columns: Columns, every: int) -> Columns:
    """One row for every n steps: averages, or the last value."""
    if every == 1:
        return columns
    rows = len(next(iter(columns.values()))) // every
    thinned: Columns = {}
    for name, values in columns.items():
        blocks = values[: rows * every].reshape(rows, every)
        thinned[name] = blocks[:, -1] if name in _LAST else blocks.mean(axis=1)
        if name == "length_reward_corr":
            thinned[name] = _mean_of_known(blocks)
    return thinned


def _mean_of_known(blocks: FloatArray) -> FloatArray:
    """The mean of each row without its `NaN`s; `NaN` if there are no other values."""
    known = np.isfinite(blocks)
    count = known.sum(axis=1)
    return np.where(count > 0, np.where(known, blocks, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def to_events(traits: Traits, columns: Columns, forces: Forces, run_id: str, reduction: str) -> list[Event]:
    """The rows as a log holds them, without an undefined `length_reward_corr`."""
    every = traits.log_every
    clock = (_START + np.cumsum(columns["step_time"]))[every - 1 :: every].tolist()
    steps = np.arange(1, len(forces.lr) + 1) - forces.rewind.astype(np.int64)
    columns = _thin(columns, every)
    names = list(columns)
    generated = frozenset(name for name in names if name.startswith(_GENERATION))
    sometimes = frozenset(name for name in names if name.startswith("eval_"))
    info = {"run_id": run_id, "phase": "train", "reductions": {"kl_mean": reduction}}
    events = []
    rows = np.column_stack(list(columns.values())).tolist()
    for row, (step, values) in enumerate(zip(steps[every - 1 :: every].tolist(), rows, strict=True)):
        metrics = dict(zip(names, values, strict=True))
        if (corr := metrics.get("length_reward_corr", 0.0)) != corr:
            del metrics["length_reward_corr"]
        if row % traits.gen_every:
            for name in generated & metrics.keys():
                del metrics[name]
        if sometimes and row % traits.held_out:
            for name in sometimes:
                del metrics[name]
        events.append(Event(step, metrics, clock[row], model_info=dict(info)))
    return events
