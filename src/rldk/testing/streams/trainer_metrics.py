"""The metrics that PPO, GRPO and preference training log."""

from __future__ import annotations

import numpy as np

from rldk.testing.streams.batch import Batch
from rldk.testing.streams.columns import Columns, entropy, gradient, machine, responses, spikes
from rldk.testing.streams.forces import Forces
from rldk.testing.streams.latent import Latent
from rldk.testing.streams.noise import FloatArray, Noise, follow
from rldk.testing.streams.traits import Traits

__all__ = ["dpo_columns", "grpo_columns", "ppo_columns", "update_columns"]

_CLIP = 0.2


def update_columns(traits: Traits, latent: Latent, forces: Forces, noise: Noise) -> Columns:
    """The effect of an update on the ratio: KL, spread and the share of clipped tokens follow from one step size.

    Most tokens do not move at all; the log-ratio of the `active` ones has a heavy tail, and clipped ones are counted.
    """
    steps = noise.steps
    stride = np.sqrt(np.minimum(latent.pace, 400.0)) * forces.step * np.sqrt(latent.activity)
    jitter = noise.factor("update", 0.35, 0.5 * traits.rho, traits.tail) * noise.spikes("update spikes", 0.002, 2.0, 8.0)
    kl = np.minimum(traits.step_size * stride * stride * jitter, 3.0)
    sigma = np.sqrt(2.0 * kl / traits.active)
    clipped = traits.active / (1.0 + np.power(_CLIP / np.maximum(sigma, 1e-6), 3.0)) * noise.factor("clipped", 0.2)
    tokens = traits.batch * traits.length_start * traits.updates
    tall = np.minimum(sigma * noise.rng("tallest").gumbel(2.5, 0.4, steps) + forces.ratio, 60.0)
    spread = np.sqrt(traits.active * np.expm1(np.minimum(sigma * sigma, 8.0))) + 0.02 * np.expm1(forces.ratio)
    return {
        "kl_update": kl + 0.02 * forces.ratio,
        "clip_frac": np.minimum(np.floor(clipped * tokens + noise.uniform("last clipped")) / tokens, 1.0),
        "ratio_mean": 1.0 + 0.02 * spread * noise.normal("ratio") + 2e-3 * np.expm1(forces.ratio),
        "ratio_std": spread,
        "ratio_max": np.exp(np.maximum(tall, 0.0)),
    }


def _value_error(traits: Traits, forces: Forces, noise: Noise, surprise: FloatArray) -> FloatArray:
    """Root mean square of the value function's error, in spreads of the return."""
    fade = np.exp(-np.arange(noise.steps) / (0.12 * noise.steps))
    error = traits.value_floor + (traits.value_start - traits.value_floor) * fade
    error = error * np.exp(0.1 * noise.wander("value", 0.1 * noise.steps))
    growth = np.exp(np.minimum(np.cumsum(forces.value), 12.0))
    return np.asarray(np.sqrt(np.square(error) + 0.15 * np.square(np.clip(surprise, -3.0, 3.0))) * growth)


def _advantages(traits: Traits, forces: Forces, noise: Noise, spread: FloatArray, surprise: FloatArray) -> Columns:
    """Advantages, raw or whitened; whitened ones have mean 0 and spread 1 whatever happens."""
    reach = noise.rng("advantage reach").gumbel(3.2, 0.5, (noise.steps, 2))
    if traits.whiten:
        mean, scale = 1e-8 * noise.normal("advantage"), 1.0 + 2e-4 * noise.normal("advantage spread")
    else:
        scale = 0.6 * spread * noise.factor("advantage spread", 0.1, traits.rho, traits.tail)
        lean = 0.05 * noise.series("advantage", traits.rho, traits.tail) + 0.1 * np.clip(surprise, -2.0, 2.0)
        mean = scale * (lean + forces.advantage)
    return {
        "advantage_mean": mean,
        "advantage_std": scale,
        "advantage_min": mean - scale * reach[:, 0],
        "advantage_max": mean + scale * reach[:, 1],
    }


def ppo_columns(traits: Traits, latent: Latent, batch: Batch, forces: Forces, noise: Noise) -> Columns:
    """All metrics of a PPO run."""
    columns = responses(traits, batch)
    columns["reward_min"], columns["reward_max"] = batch.rewards.min(axis=1), batch.rewards.max(axis=1)
    columns["eos_frac"] = 1.0 - columns["truncated_frac"]
    columns["kl_mean"] = latent.kl
    columns["kl_std"] = (0.5 * np.abs(latent.kl) + 0.1 * traits.kl_level) * noise.factor("kl spread", 0.2)
    columns["kl_coef"] = latent.coef
    if traits.adaptive:
        columns["target_kl"] = np.full(noise.steps, traits.kl_level)
    columns["entropy_mean"] = entropy(traits, latent, noise)
    columns.update(update_columns(traits, latent, forces, noise))

    unit = traits.reward_spread if traits.reward_kind == "score" else 0.4 * traits.reward_scale
    value = follow(batch.expected, 0.03, batch.expected[0] + unit * noise.rng("first value").normal())
    surprise = (batch.expected - value) / unit
    error = _value_error(traits, forces, noise, surprise)
    breadth = np.maximum(columns["reward_std"], 1e-7)
    columns["value_mean"] = value + 0.05 * unit * error * noise.series("value noise", traits.rho)
    columns["value_std"] = breadth * np.maximum(1.0 - error, 0.25) + 0.3 * unit * np.maximum(error - 1.2, 0.0)
    columns["explained_variance"] = 1.0 - np.square(error) * noise.factor("explained", 0.12, traits.rho)
    columns["value_loss"] = (
        0.5 * np.square(error * unit) * noise.factor("value loss", 0.25, traits.rho, traits.tail) + forces.loss
    )
    columns.update(_advantages(traits, forces, noise, unit * error, surprise))

    gain = 0.03 * np.sqrt(columns["kl_update"])
    columns["policy_loss"] = (
        0.01 * noise.series("policy loss", 0.0, traits.tail) * spikes(traits, noise) - gain + 0.2 * forces.loss
    )
    columns["loss"] = columns["policy_loss"] + 0.1 * columns["value_loss"]
    columns["policy_grad_norm"] = gradient(traits, latent, forces, noise, "policy gradient")
    effort = 0.8 * np.square(error) / np.square(traits.value_floor) * forces.value_grad
    columns["value_grad_norm"] = effort * gradient(traits, latent, forces, noise, "value gradient")
    columns["grad_norm"] = np.hypot(columns["policy_grad_norm"], columns["value_grad_norm"])
    columns["lr"] = latent.lr
    if traits.mismatch:
        columns["mismatch_kl"] = traits.mismatch * forces.mismatch * noise.factor("mismatch", 0.25, 0.0, 3.5)
    if traits.held_out:
        columns["eval_reward_mean"] = batch.held_out
    columns.update(machine(traits, forces, noise, batch.lengths.sum(axis=1), batch.lengths.max(axis=1)))
    del columns["num_tokens"]
    return columns


def grpo_columns(traits: Traits, latent: Latent, batch: Batch, forces: Forces, noise: Noise) -> Columns:
    """All metrics of a GRPO run; gradients vanish with the spread of the groups, as in reality."""
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
    """With one update per batch the ratio is 1 by construction, and nothing moves or is clipped."""
    moved = update_columns(traits, latent, forces, noise)
    if traits.updates == 1:
        return {"clip_frac": np.zeros(noise.steps)}
    return {name: moved[name] for name in ("kl_update", "clip_frac", "ratio_mean", "ratio_max")}


def dpo_columns(traits: Traits, latent: Latent, forces: Forces, noise: Noise) -> Columns:
    """All metrics of a DPO run. In a healthy run both log-probabilities may fall a little; only a plunge is a symptom."""
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
