"""The responses behind the averages: each one's reward and length, so that mean, spread and counts agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from rldk.testing.streams.forces import Forces
from rldk.testing.streams.latent import Latent
from rldk.testing.streams.noise import FloatArray, Noise
from rldk.testing.streams.traits import Traits

__all__ = ["Batch", "rank_correlation", "sample"]

_HARDNESS = 0.8
"""How much prompts differ in difficulty, relative to responses to one prompt."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rewards and lengths of the responses, one row per step; and the mean reward on held-out prompts."""

    rewards: FloatArray
    lengths: FloatArray
    cut: npt.NDArray[np.bool_]
    held_out: FloatArray
    expected: FloatArray  # the mean reward without the chance of sampling
    groups: int

    @property
    def grouped(self) -> FloatArray:
        """The rewards with a separate axis for the responses to one prompt."""
        return self.rewards.reshape(len(self.rewards), self.groups, -1)


def _probit(share: float) -> float:
    return NormalDist().inv_cdf(min(max(share, 1e-3), 1.0 - 1e-3))


def _ability(traits: Traits, latent: Latent) -> FloatArray:
    """How good the answers are, in standard deviations above the point where half of them are right."""
    stretch = math.sqrt(1.0 + _HARDNESS**2)
    start, end = stretch * _probit(traits.reward_start), stretch * _probit(traits.reward_end)
    up, down = np.maximum(latent.skill, 0.0), np.minimum(latent.skill, 0.0)
    good = start + (end - start) * up + (start + 5.0) * down
    return np.asarray(-5.0 + (good + 5.0) * latent.coherence)


def _scores(traits: Traits, latent: Latent) -> FloatArray:
    """The mean of a reward model's scores; without skill it falls some standard deviations below the start."""
    floor = traits.reward_start - 4.0 * traits.reward_spread
    up, down = np.maximum(latent.skill, 0.0), np.minimum(latent.skill, 0.0)
    good = traits.reward_start + (traits.reward_end - traits.reward_start) * up + 4.0 * traits.reward_spread * down
    return np.asarray(floor + (good - floor) * latent.coherence)


def _grade(kind: str, ability: FloatArray) -> FloatArray:
    """The rewards that follow from ability."""
    smooth = 1.0 / (1.0 + np.exp(-np.clip(2.2 * ability, -40.0, 40.0))) if kind != "binary" else 0.0
    right = (ability > 0.0).astype(np.float64) if kind != "graded" else 0.0
    return np.asarray({"binary": right, "graded": smooth, "mixed": 0.8 * right + 0.2 * smooth}[kind])


def sample(traits: Traits, latent: Latent, forces: Forces, noise: Noise) -> Batch:
    """Draw the responses of every step."""
    chance = noise.normal("responses", traits.batch)
    mood = (traits.wander + 0.1) * noise.series("mood", traits.rho, traits.tail)
    if traits.reward_kind == "score":
        mean = _scores(traits, latent)
        breadth = traits.reward_spread * forces.spread * noise.factor("spread", 0.1, traits.rho)
        expected = mean + traits.reward_spread * forces.hack
        rewards = (expected + 0.6 * breadth * mood)[:, None] + breadth[:, None] * chance
    else:
        ability = _ability(traits, latent)
        hardness = np.repeat(noise.normal("prompts", traits.groups), traits.group_size, axis=1)
        level = (ability + forces.hack + mood)[:, None]
        rewards = _grade(traits.reward_kind, level + forces.spread[:, None] * (_HARDNESS * hardness + chance))
        rewards = traits.reward_offset + traits.reward_scale * rewards
        mean, expected = (traits.reward_offset + traits.reward_scale * _share(able) for able in (ability, ability + forces.hack))
    dead = forces.dead[:, None] > 0.0
    if dead.any():
        constant = traits.reward_start if traits.reward_kind == "score" else traits.reward_offset
        rewards = np.where(dead, constant, rewards)
    lengths, cut = _lengths(traits, latent, forces, noise, chance)
    unit = traits.reward_spread if traits.reward_kind == "score" else 0.3 * traits.reward_scale
    held_out = mean + 0.12 * unit * noise.normal("held out")
    return Batch(rewards, lengths, cut, held_out, np.where(dead[:, 0], rewards[:, 0], expected), traits.groups)


def _lengths(
    traits: Traits, latent: Latent, forces: Forces, noise: Noise, chance: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Lengths of the responses, and which of them were cut off."""
    count = chance.shape[1]
    usual = traits.length_corr + 0.05 * noise.wander("length corr", 0.05 * noise.steps)
    shared = np.clip(usual + forces.corr, -0.97, 0.97)[:, None]
    deviation = shared * chance + np.sqrt(1.0 - shared * shared) * noise.normal("lengths", count)
    lengths = np.rint(latent.length[:, None] * np.exp(traits.length_spread * deviation))
    endless = np.maximum(np.minimum(forces.endless, 1.0), 1.0 - latent.coherence)
    endless = np.where(endless < 1e-3, 0.0, endless)
    if traits.at_cap:
        endless = np.ones_like(endless)
    cut = (lengths >= traits.length_cap) | (noise.uniform("endings", count) < endless[:, None])
    return np.where(cut, float(traits.length_cap), np.maximum(lengths, 1.0)), cut


def _share(ability: FloatArray) -> FloatArray:
    """The share of right answers at an ability, over prompts of all difficulties."""
    scale = math.sqrt(2.0 * (1.0 + _HARDNESS**2))
    return np.array([0.5 * math.erfc(-value / scale) for value in ability.tolist()])


def _ranks(values: FloatArray) -> FloatArray:
    return np.argsort(np.argsort(values, axis=1), axis=1).astype(np.float64)


def rank_correlation(lengths: FloatArray, rewards: FloatArray, tied: bool) -> FloatArray:
    """Rank correlation of each row; `NaN` where one of the two does not vary.

    With rewards of two values (`tied`) the ranks are a linear function of the rewards and are not computed.
    """
    first = _ranks(lengths)
    second = rewards if tied else _ranks(rewards)
    first = first - first.mean(axis=1, keepdims=True)
    second = second - second.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(first).sum(axis=1) * np.square(second).sum(axis=1))
    varied = (scale > 1e-9) & (np.ptp(lengths, axis=1) > 0.0) & (np.ptp(rewards, axis=1) > 1e-12)
    return np.where(varied, (first * second).sum(axis=1) / np.where(varied, scale, 1.0), np.nan)
