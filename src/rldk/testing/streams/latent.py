"""The state behind the metrics: skill, distance from the reference, entropy, length, and the KL controller."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rldk.functional.kl import AdaptiveKL
from rldk.testing.streams.forces import Forces
from rldk.testing.streams.noise import FloatArray, Noise
from rldk.testing.streams.traits import Traits

__all__ = ["Latent", "evolve"]

_SPAN = 60.0
"""The largest distance from the reference, as a multiple of its usual level: it cannot grow without bound."""


@dataclass(frozen=True, slots=True)
class Latent:
    """The state of a run, one value per step."""

    lr: FloatArray
    pace: FloatArray  # the learning rate as a share of its peak
    skill: FloatArray  # 0 at the start, 1 when all is learnt, -1 when all is lost
    kl: FloatArray  # the KL as estimated on the batch
    coef: FloatArray
    entropy: FloatArray
    coherence: FloatArray  # 1 where the text makes sense, 0 where it is noise
    activity: FloatArray  # how much the policy still explores, 1 if healthy
    length: FloatArray


def _schedule(traits: Traits, steps: int) -> FloatArray:
    """The learning rate as a share of its peak: warm-up, then down to a hundredth, or level."""
    done = np.arange(1, steps + 1) / steps
    rise = np.minimum(done / max(traits.warmup, 1.0 / steps), 1.0)
    rest = np.clip((done - traits.warmup) / (1.0 - traits.warmup), 0.0, 1.0)
    shapes = {"linear": 1.0 - 0.99 * rest, "cosine": 0.505 + 0.495 * np.cos(math.pi * rest), "constant": np.ones(steps)}
    return np.asarray(rise * shapes[traits.schedule])


def _course(start: float, end: float, steps: int, share: float) -> FloatArray:
    """The logarithm of a quantity that goes from `start` to `end`, most of the way within a share of the run."""
    way = 1.0 - np.exp(-np.arange(steps) / (share * steps))
    return math.log(start) + math.log(end / start) * way


def _drift(traits: Traits, forces: Forces, noise: Noise, pace: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The estimated KL from the reference, and the coefficient that holds it: each depends on the other's past."""
    steps, level = noise.steps, traits.kl_level
    shove = level / max(traits.kl_time * steps, 2.0)
    balance = traits.kl_coef * noise.rng("balance").uniform(0.7, 1.4)
    pull = shove / (level * balance)
    push = (shove * forces.push * noise.factor("push", 0.5, 0.8) * pace).tolist()
    jitter = noise.factor("kl", traits.kl_noise, 0.3 * traits.rho, traits.tail)
    jitter = jitter * noise.spikes("kl spikes", traits.kl_spikes, 2.0, 4.0 if traits.adaptive else 25.0)
    read = (jitter * (1.0 + forces.kl_shift)).tolist()
    rounding = noise.normal("kl rounding")
    offset = (0.05 * level * rounding if traits.adaptive else 0.002 * level * np.abs(rounding)).tolist()
    rate = (traits.controller_rate * forces.control).tolist()
    frozen, delay = forces.frozen.tolist(), forces.delay.astype(int).tolist()
    drag, goal, speed = forces.drift_pull.tolist(), (level * forces.drift_goal).tolist(), pace.tolist()
    distance, controller = traits.kl_start * level, AdaptiveKL(traits.kl_coef, target=level, horizon=1.0)
    estimates: list[float] = []
    coefs: list[float] = []
    for step in range(steps):
        late = coefs[max(step - delay[step], 0)] if delay[step] and coefs else controller.coef
        kl = distance * read[step] + offset[step]
        estimates.append(kl)
        coefs.append(controller.coef)
        distance += push[step] * (1.0 - distance / (_SPAN * level))
        distance -= min(pull * late * speed[step], 0.3) * distance
        distance = max(distance + drag[step] * (goal[step] - distance), 0.0)
        if traits.adaptive and not frozen[step]:
            controller.coef = min(max(controller.update(kl, rate[step]), 1e-6), 1e6)
    return np.array(estimates), np.array(coefs)


def _drawn(pull: FloatArray, goal: FloatArray) -> FloatArray:
    """A deviation that starts at 0 and is drawn towards `goal` by the share `pull` each step."""
    if not pull.any():
        return np.zeros(len(pull))
    deviation, series = 0.0, []
    for share, wanted in zip(pull.tolist(), goal.tolist(), strict=True):
        deviation += share * (wanted - deviation)
        series.append(deviation)
    return np.array(series)


def _skill(traits: Traits, forces: Forces, noise: Noise, pace: FloatArray) -> FloatArray:
    """What has been learnt, with the plateaus and dips of real learning."""
    steps = noise.steps
    gain = forces.learn * np.minimum(pace, 2.0) * noise.factor("learning", 0.8, 0.97) / (traits.learn_time * steps)
    late = traits.curve == "late"
    pulls, goals = forces.skill_pull.tolist(), forces.skill_goal.tolist()
    skill, series = 0.0, []
    for step, lesson in enumerate(gain.tolist()):
        ease = 6.0 * (max(skill, 0.0) + 0.03) if late else 1.6
        skill += min(lesson * ease, 0.5) * (1.0 - skill) * (skill > -0.3)
        skill += pulls[step] * (goals[step] - skill)
        series.append(skill)
    dips = noise.bumps("dips", traits.dips, (0.004 * steps + 2, 0.025 * steps + 3), (0.3, 0.9))
    known = np.array(series)
    fallen = np.minimum(dips, 1.0) * np.clip(known + 0.3, 0.0, 1.0)
    sway = 0.4 * traits.wander * noise.wander("skill", 0.05 * steps)
    return np.asarray(known - fallen + sway * np.clip(1.0 + known, 0.0, 1.0))


def evolve(traits: Traits, forces: Forces, noise: Noise) -> Latent:
    """Simulate the course of a run."""
    steps = noise.steps
    share = _schedule(traits, steps) * forces.lr
    kl, coef = _drift(traits, forces, noise, share)
    bend = _drawn(forces.entropy_pull, forces.entropy_goal)
    natural = _course(traits.entropy_start, traits.entropy_end, steps, 0.35)
    natural += traits.wander * noise.wander("entropy", 0.06 * steps)
    natural += noise.bumps("entropy bumps", traits.entropy_bumps, (0.03 * steps, 0.12 * steps), (0.3, 0.7))
    breaking = math.log(min(max(6.0 * traits.entropy_start, 1.5), 5.0))
    coherence = 1.0 / (1.0 + np.exp(np.clip((np.minimum(natural, breaking - 0.8) + bend - breaking) / 0.15, -40.0, 40.0)))
    course = _course(traits.length_start, traits.length_end, steps, 0.25)
    course += 0.6 * traits.wander * noise.wander("length", 0.05 * steps)
    course += noise.bumps("excursions", traits.excursions, (0.015 * steps + 2, 0.04 * steps + 3), (0.7, 1.8))
    return Latent(
        lr=traits.lr * share,
        pace=share,
        skill=_skill(traits, forces, noise, share),
        kl=kl,
        coef=coef,
        entropy=np.minimum(np.exp(natural + bend), 11.0),
        coherence=coherence,
        activity=np.clip(np.exp(0.7 * bend), 0.0, 1.5),
        length=np.exp(course + _drawn(forces.length_pull, forces.length_goal)),
    )
