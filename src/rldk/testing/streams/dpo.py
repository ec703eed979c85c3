"""The metrics of preference training, where everything follows from the margins of the pairs."""

from __future__ import annotations

import numpy as np

from rldk.testing.streams.columns import Columns, entropy, gradient, machine
from rldk.testing.streams.forces import Forces
from rldk.testing.streams.latent import Latent
from rldk.testing.streams.noise import Noise
from rldk.testing.streams.traits import Traits

__all__ = ["dpo_columns"]


def dpo_columns(traits: Traits, latent: Latent, forces: Forces, noise: Noise) -> Columns:
    """All metrics of a DPO run. Both log-probabilities may fall a little in health; only a plunge is a sign."""
    steps, count, beta = noise.steps, traits.batch, traits.kl_coef
    growth = np.exp(np.minimum(np.cumsum(forces.margin), 3.5))
    centre = traits.reward_end * latent.skill * growth
    usual = np.maximum(np.abs(centre) / growth, 0.02)
    width = traits.reward_spread * usual * np.power(growth, 0.3) * noise.factor("width", 0.05)
    pairs = noise.normal("pairs", count) + 0.3 * noise.series("mood", traits.rho, traits.tail)[:, None]
    margins = centre[:, None] + width[:, None] * pairs
    earned = traits.reward_end * latent.skill
    chosen = (0.2 * earned - 0.6 * (centre - earned)) * (1.0 + 0.1 * noise.normal("chosen"))
    chosen -= 0.15 * np.abs(centre) * noise.rng("sinking").uniform(0.0, 2.0)
    wrong = 1.0 / (1.0 + np.exp(np.clip(margins, -50.0, 50.0)))
    base = -traits.length_start * 0.8 * noise.factor("texts", 0.05)
    margin = margins.mean(axis=1)
    pressure = np.maximum(2.0 * wrong.mean(axis=1), 1e-6)
    tokens = 2.0 * traits.length_start * count * noise.factor("tokens", 0.08)
    columns = {
        "loss": np.logaddexp(0.0, -margins).mean(axis=1) + forces.loss,
        "grad_norm": pressure * gradient(traits, latent, forces, noise, "policy gradient"),
        "lr": latent.lr,
        "preference_margin": margin,
        "preference_accuracy": (margins > 0.0).mean(axis=1),
        "chosen_reward_mean": chosen,
        "rejected_reward_mean": chosen - margin,
        "chosen_logp_mean": base + chosen / beta,
        "rejected_logp_mean": base + (chosen - margin) / beta,
        "entropy_mean": entropy(traits, latent, noise),
    }
    columns.update(machine(traits, forces, noise, tokens, np.full(steps, 0.5 * traits.length_cap)))
    return columns
