"""The metrics of GRPO, where advantages come from the spread within a group and there is no value function."""

from __future__ import annotations

import numpy as np

from rldk.testing.streams.batch import Batch
from rldk.testing.streams.columns import Columns, entropy, gradient, machine, responses, spikes
from rldk.testing.streams.forces import Forces
from rldk.testing.streams.latent import Latent
from rldk.testing.streams.noise import Noise
from rldk.testing.streams.ppo import update_columns
from rldk.testing.streams.traits import Traits

__all__ = ["grpo_columns"]


def grpo_columns(traits: Traits, latent: Latent, batch: Batch, forces: Forces, noise: Noise) -> Columns:
    """All metrics of a GRPO run; gradients vanish with the spread of the groups, as they do in truth."""
    spreads = batch.grouped.std(axis=2, ddof=1)
    useful = spreads > 1e-9
    columns = responses(traits, batch)
    if traits.reward_std_of == "group":
        columns["reward_std"] = spreads.mean(axis=1)
    columns["reward_zero_std_frac"] = 1.0 - useful.mean(axis=1)

    signal = np.sqrt(useful.mean(axis=1))
    if traits.zero_grads:
        signal = useful[:, -1].astype(np.float64)
    elif traits.kl_logged:
        signal = np.maximum(signal, 2e-3)
    columns["grad_norm"] = signal * gradient(traits, latent, forces, noise, "policy gradient")
    columns["lr"] = latent.lr
    penalty = traits.kl_coef * latent.kl if traits.kl_logged else 0.0
    columns["loss"] = (
        penalty + 0.03 * signal * noise.series("policy loss", 0.0, traits.tail) * spikes(traits, noise) + forces.loss
    )
    if traits.kl_logged:
        columns["kl_mean"] = latent.kl
    columns["entropy_mean"] = entropy(traits, latent, noise)
    columns.update(_updates(traits, latent, forces, noise))
    if traits.mismatch:
        lone = noise.spikes("mismatch spikes", 0.004, 5.0, 60.0)
        columns["mismatch_kl"] = traits.mismatch * forces.mismatch * noise.factor("mismatch", 0.25, 0.0, 3.5) * lone
        apart = np.minimum(np.sqrt(traits.mismatch * forces.mismatch), 3.0)
        columns["mismatch_logp_diff"] = apart * noise.factor("mismatch size", 0.1)
    if traits.held_out:
        columns["eval_reward_mean"] = batch.held_out
    columns.update(machine(traits, forces, noise, batch.lengths.sum(axis=1), batch.lengths.max(axis=1)))
    return columns


def _updates(traits: Traits, latent: Latent, forces: Forces, noise: Noise) -> Columns:
    """With one update a batch the ratio is 1 by construction, and nothing moves or is clipped."""
    moved = update_columns(traits, latent, forces, noise)
    if traits.updates == 1:
        return {"clip_frac": np.zeros(noise.steps)}
    return {name: moved[name] for name in ("kl_update", "clip_frac", "ratio_mean", "ratio_max")}
