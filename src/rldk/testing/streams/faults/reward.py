"""Faults of the reward and of response lengths."""

from __future__ import annotations

import math

import numpy as np

from rldk.testing.streams.forces import Forces, Phase

__all__: list[str] = []


def reward_hacking(forces: Forces, phase: Phase) -> None:
    """The policy exploits a flaw of the reward: reward up, spread gone; KL and length up, entropy and held-out reward down."""
    width = phase.draw(40, 120)
    forces.hack = phase.draw(3.0, 5.0) * phase.severity * phase.ramp(width)
    forces.spread = phase.toward(0.2, width)
    forces.drift_pull = 0.04 * phase.ramp(width / 2)
    forces.drift_goal = np.full_like(forces.lr, phase.draw(4.0, 8.0) * phase.severity)
    forces.entropy_pull = 0.03 * phase.ramp(width / 2)
    forces.entropy_goal = np.full_like(forces.lr, -math.log(phase.draw(3.0, 8.0)))
    forces.length_pull = 0.03 * phase.ramp(width / 2)
    forces.length_goal = np.full_like(forces.lr, math.log(phase.draw(1.5, 2.5)))
    forces.skill_pull = 0.01 * phase.ramp(width)
    forces.skill_goal = np.full_like(forces.lr, -0.15)
    forces.control = phase.toward(0.1, 10)
    forces.learn = 1.0 - phase.ramp(10)


def reward_saturation(forces: Forces, phase: Phase) -> None:
    """The reward reaches its maximum: every answer gets it, no group has a spread, gradients fade, and the KL keeps growing."""
    width = phase.draw(30, 90)
    forces.hack = 5.0 * phase.severity * phase.ramp(width)
    forces.spread = phase.toward(0.05, 1.5 * width)
    forces.grad = phase.toward(0.1, 1.5 * width)
    forces.drift_pull = 0.01 * phase.ramp(3.0 * width)
    forces.drift_goal = np.full_like(forces.lr, phase.draw(8.0, 15.0) * phase.severity)
    forces.control = phase.toward(0.1, 10)


def dead_reward(forces: Forces, phase: Phase) -> None:
    """Every response scores the same: nothing can be learnt, gradients are noise."""
    forces.dead = phase.on.astype(np.float64)
    forces.learn = np.where(phase.on, 0.0, 1.0)
    forces.grad = phase.toward(0.02, 20)
    forces.push = phase.toward(0.1, 10)


def plateau(forces: Forces, phase: Phase) -> None:
    """Nothing is learnt, although the policy changes."""
    forces.learn = np.where(phase.on, 0.0, 1.0)


def length_runaway(forces: Forces, phase: Phase) -> None:
    """Longer responses pay: lengths grow until nearly all are truncated, and then the reward falls."""
    room = phase.traits.length_cap / phase.traits.length_end
    forces.length_pull = phase.draw(0.01, 0.03) * phase.ramp(20)
    forces.length_goal = np.full_like(forces.lr, math.log(2.2 * room) * phase.severity)
    forces.skill_pull = 0.02 * phase.ramp(150)
    forces.skill_goal = np.full_like(forces.lr, -0.4)
    forces.learn = 1.0 - phase.ramp(20)


def length_collapse(forces: Forces, phase: Phase) -> None:
    """Answers shrink to a few tokens, and the reward falls with them."""
    forces.length_pull = phase.draw(0.03, 0.1) * phase.ramp(20)
    forces.length_goal = np.full_like(forces.lr, math.log(3.0 / max(phase.traits.length_end, 30.0)) * phase.severity)
    forces.skill_pull = 0.03 * phase.ramp(40)
    forces.skill_goal = np.full_like(forces.lr, -0.5)
    forces.learn = 1.0 - phase.ramp(10)


def eos_starvation(forces: Forces, phase: Phase) -> None:
    """The policy forgets the end token: within tens of steps no response emits EOS."""
    forces.endless = min(0.98 * phase.severity, 1.0) * phase.ramp(phase.draw(15, 50))
    forces.skill_pull = 0.03 * phase.ramp(60)
    forces.skill_goal = np.full_like(forces.lr, -0.4)
    forces.learn = 1.0 - phase.ramp(10)


def length_bias(forces: Forces, phase: Phase) -> None:
    """The reward comes to favour length: their correlation rises to 0.5 to 0.9, and both rise."""
    width = phase.draw(40, 100)
    forces.corr = (0.92 * phase.severity - phase.traits.length_corr) * phase.ramp(width)
    forces.length_pull = 0.01 * phase.ramp(width)
    forces.length_goal = np.full_like(forces.lr, math.log(1.6))
    forces.hack = 0.5 * phase.severity * phase.ramp(2 * width)


def preference_degenerate(forces: Forces, phase: Phase) -> None:
    """Margins explode, both log-probabilities plunge, the loss and its gradient die."""
    forces.margin = phase.draw(0.02, 0.06) * phase.severity * phase.ramp(20)


def advantage_bias(forces: Forces, phase: Phase) -> None:
    """The baseline is wrong: the mean of raw advantages is larger than their spread."""
    side = 1.0 if phase.coin() else -1.0
    forces.advantage = side * phase.draw(1.0, 2.0) * phase.severity * phase.rise(phase.draw(10, 40))
    forces.learn = 1.0 - 0.8 * phase.ramp(40)
