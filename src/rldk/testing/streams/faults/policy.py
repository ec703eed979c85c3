"""Faults of the policy."""

from __future__ import annotations

import math

import numpy as np

from rldk.testing.streams.forces import Forces, Phase

__all__: list[str] = []


def policy_collapse(forces: Forces, phase: Phase) -> None:
    """One destructive update: the reward falls within some tens of steps and stays low, the KL grows, the entropy changes."""
    forces.skill_pull = phase.draw(0.06, 0.2) * phase.ramp(15)
    forces.skill_goal = np.full_like(forces.lr, -min(phase.draw(0.4, 1.0) * phase.severity, 1.0))
    forces.learn = 1.0 - phase.ramp(5)
    forces.entropy_pull = 0.04 * phase.ramp(20)
    forces.entropy_goal = np.full_like(forces.lr, math.log(2.0) if phase.coin() else -math.log(3.0))
    forces.drift_pull = 0.03 * phase.ramp(30)
    forces.drift_goal = np.full_like(forces.lr, phase.draw(3.0, 8.0))
    forces.grad = phase.toward(2.0, 20)


def entropy_collapse(forces: Forces, phase: Phase) -> None:
    """The policy settles on one answer: entropy to a hundredth within about a hundred steps, spread and learning go with it."""
    forces.entropy_pull = phase.draw(0.03, 0.1) * phase.ramp(20)
    forces.entropy_goal = np.full_like(forces.lr, -4.6 * phase.severity)
    forces.spread = phase.toward(0.1, 80)
    forces.learn = 1.0 - phase.ramp(30)
    forces.skill_pull = 0.003 * phase.ramp(60)


def entropy_explosion(forces: Forces, phase: Phase) -> None:
    """The text dissolves: entropy to several nats, then no end token, lengths at the cap, no reward."""
    forces.entropy_pull = phase.draw(0.04, 0.15) * phase.ramp(15)
    ceiling = phase.draw(6.0, 9.0) * min(phase.severity, 1.2)
    forces.entropy_goal = np.full_like(forces.lr, math.log(ceiling / phase.traits.entropy_end))
    forces.learn = 1.0 - phase.ramp(5)
    forces.drift_pull = 0.05 * phase.ramp(20)
    forces.drift_goal = np.full_like(forces.lr, 15.0)
    forces.mismatch = phase.toward(15.0, 60)


def kl_explosion(forces: Forces, phase: Phase) -> None:
    """The penalty is too weak: the KL climbs to 20 to 50 times its level, gradients grow, the reward hardly shows it."""
    forces.drift_pull = phase.draw(0.01, 0.04) * phase.ramp(10)
    forces.drift_goal = np.full_like(forces.lr, phase.draw(20.0, 50.0) * phase.severity)
    forces.control = phase.toward(0.1, 10)
    forces.grad = phase.toward(phase.draw(4.0, 15.0), 80)


def kl_spike(forces: Forces, phase: Phase) -> None:
    """One bad batch with lasting effect: the KL jumps tenfold within three steps, stays for tens of steps, then comes back."""
    stay = phase.draw(25, 45)
    held = (phase.since > 0) & (phase.since <= stay)
    forces.drift_pull = np.where(held, 0.5, np.where(phase.since > stay, 0.06 * np.exp(-(phase.since - stay) / 60.0), 0.0))
    forces.drift_goal = np.where(held, phase.draw(8.0, 15.0) * phase.severity, 1.0)
    forces.grad = np.where(held, 4.0, 1.0)
    forces.step = np.where(held, 2.5, 1.0)
    forces.skill_pull = np.where(held, 0.03, 0.0)


def negative_kl(forces: Forces, phase: Phase) -> None:
    """The KL is estimated on other tokens than the policy wrote (padding, temperature): it sinks below zero and stays there."""
    forces.kl_shift = -(1.0 + phase.draw(0.4, 1.2) * phase.severity) * phase.rise(phase.draw(15, 60))


def clip_saturation(forces: Forces, phase: Phase) -> None:
    """Updates too large for the clip: within tens of steps most of the tokens that move are clipped."""
    forces.step = phase.toward(_stride(phase, 0.8), phase.draw(10, 40))
    forces.learn = 1.0 - 0.7 * phase.ramp(40)


def ratio_explosion(forces: Forces, phase: Phase) -> None:
    """A few tokens run away: the largest ratio grows to thousands, in bursts that come ever more often."""
    width = phase.draw(30, 90)
    burst = phase.bursts("ratio", 0.2 + 0.8 * phase.ramp(width))
    forces.ratio = (2.0 + 4.5 * burst) * phase.severity * phase.ramp(width) * (burst > 0)
    forces.step = phase.toward(_stride(phase, 0.6), width)
    forces.grad = phase.toward(3.0, width)


def learning_rate_too_high(forces: Forces, phase: Phase) -> None:
    """Updates are too large from the first step on: KL up, many tokens clipped, the reward lost; then all is calm."""
    factor = phase.draw(30.0, 100.0) * phase.severity
    forces.lr = np.where(phase.on, factor, 1.0)
    calm = phase.draw(40, 120)
    wild = phase.ramp(2) - phase.ramp(2 * calm)
    forces.step = np.where(phase.on, 1e-2 + _stride(phase, 1.2) / math.sqrt(factor) * wild, 1.0)
    forces.drift_pull = np.where(phase.on, 0.15, 0.0)
    forces.drift_goal = np.full_like(forces.lr, phase.draw(10.0, 30.0))
    forces.push = np.where(phase.on, 0.0, 1.0)
    forces.learn = np.where(phase.on, 0.0, 1.0)
    forces.skill_pull = 0.1 * phase.ramp(10)
    forces.skill_goal = np.full_like(forces.lr, -0.95)
    forces.entropy_pull = 0.06 * phase.ramp(20)
    forces.entropy_goal = np.full_like(forces.lr, -6.0)
    forces.grad = 1.0 + (phase.draw(5.0, 20.0) - 1.0) * wild
    forces.spread = phase.toward(0.05, calm)


def _stride(phase: Phase, sigma: float) -> float:
    """The factor on updates that gives the log-ratio of the moving tokens a standard deviation of `sigma`."""
    usual = math.sqrt(2.0 * phase.traits.step_size / phase.traits.active)
    return max(sigma / usual, 3.0)
