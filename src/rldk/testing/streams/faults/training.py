"""Faults of the optimisation (losses, gradients, value function, KL controller) and of the machine (speed, memory, sampler)."""

from __future__ import annotations

import math

import numpy as np

from rldk.testing.streams.forces import Forces, Phase

__all__ = []


def value_divergence(forces: Forces, phase: Phase) -> None:
    """The value function runs away: its loss grows by orders of magnitude, it explains less than nothing, the policy follows."""
    fade = np.exp(-phase.since / phase.draw(60, 120))
    forces.value = np.where(phase.on, phase.draw(0.03, 0.07) * phase.severity * fade, 0.0)
    forces.skill_pull = 0.01 * phase.ramp(150)
    forces.skill_goal = np.full_like(forces.lr, -0.3)
    forces.learn = 1.0 - phase.ramp(30)


def value_unexplained(forces: Forces, phase: Phase) -> None:
    """The value function stops working: it explains nothing any more, and its loss is several times larger."""
    reach = math.log(phase.draw(1.35, 1.7) / phase.traits.value_floor) * phase.severity
    forces.value = np.diff(reach * phase.ramp(phase.draw(20, 60)), prepend=0.0)
    forces.learn = 1.0 - 0.8 * phase.ramp(30)


def loss_explosion(forces: Forces, phase: Phase) -> None:
    """Bursts of the loss, each orders of magnitude larger than the last, until they are permanent."""
    width = phase.draw(40, 100)
    burst = phase.bursts("loss", 0.1 + 0.85 * phase.ramp(width))
    size = np.power(10.0, (1.0 + 4.0 * burst) * phase.severity * phase.ramp(width))
    forces.loss = np.where(burst > 0, size, 0.0)
    forces.grad = np.where(burst > 0, np.sqrt(np.maximum(size, 1.0)), 1.0)
    forces.drift_pull = 0.01 * phase.ramp(width)
    forces.drift_goal = np.full_like(forces.lr, 6.0)


def exploding_gradients(forces: Forces, phase: Phase) -> None:
    """The gradient norm grows by some percent per step, to hundreds or thousands of times its level."""
    forces.grad = phase.toward(phase.draw(200.0, 3000.0), phase.draw(30, 100))
    forces.skill_pull = 0.01 * phase.ramp(100)


def vanishing_gradients(forces: Forces, phase: Phase) -> None:
    """The gradient dies away to a ten-thousandth, and with it all change."""
    width = phase.draw(20, 80)
    forces.grad = phase.toward(1e-4, width)
    forces.step = phase.toward(0.02, width)
    forces.learn = 1.0 - phase.ramp(width)
    forces.push = 1.0 - phase.ramp(width)


def gradient_imbalance(forces: Forces, phase: Phase) -> None:
    """The value function's gradient swamps the policy's: a hundred times it and more."""
    forces.value_grad = phase.toward(phase.draw(100.0, 300.0), phase.draw(30, 80))
    forces.learn = 1.0 - 0.7 * phase.ramp(50)


def nonfinite_metric(forces: Forces, phase: Phase) -> None:
    """Gradients grow for some steps, then no number is finite; or the loss reads 0 and only the gradient norm shows it."""
    lead = phase.draw(4, 15)
    forces.grad = np.where(phase.since <= lead, phase.toward(50.0, lead), 1.0)
    forces.broken = np.where(phase.since > lead, 1.0 if phase.coin() else 2.0, 0.0)


def controller_stuck(forces: Forces, phase: Phase) -> None:
    """The KL leaves its target for good and the coefficient does not answer."""
    forces.frozen = phase.on.astype(np.float64)
    forces.drift_pull = phase.draw(0.02, 0.05) * phase.ramp(20)
    forces.drift_goal = np.full_like(forces.lr, phase.draw(3.0, 5.0) * phase.severity)


def controller_oscillation(forces: Forces, phase: Phase) -> None:
    """The horizon is far too short: the coefficient over-reacts and oscillates, and so does the KL."""
    forces.control = np.where(phase.on, 0.9 * phase.severity / phase.traits.controller_rate, 1.0)
    forces.delay = np.where(phase.on, phase.draw(4, 9), 0.0)
    forces.push = phase.toward(4.0, 10)


def throughput_drop(forces: Forces, phase: Phase) -> None:
    """Steps take three times as long within some tens of steps, though the work is the same."""
    forces.seconds = phase.toward(phase.draw(2.5, 5.0), phase.draw(3, 30))


def memory_pressure(forces: Forces, phase: Phase) -> None:
    """A memory leak: memory grows steadily until none is free, and steps slow down at the end."""
    room = 80.0 - phase.traits.memory_gb
    width = phase.draw(200, 400) / phase.severity
    forces.leak = room * np.minimum(phase.since / width, 1.0)
    forces.seconds = 1.0 + 0.6 * np.clip(phase.since / width - 0.9, 0.0, 0.1) * 10.0


def train_inference_mismatch(forces: Forces, phase: Phase) -> None:
    """The probabilities of trainer and sampler drift apart, tens of times further than before; learning suffers."""
    forces.mismatch = phase.toward(phase.draw(40.0, 120.0), phase.draw(20, 100))
    forces.learn = 1.0 - 0.7 * phase.ramp(60)
    forces.skill_pull = 0.005 * phase.ramp(80)


def step_regression(forces: Forces, phase: Phase) -> None:
    """The run is resumed from an older checkpoint, and the step counter falls back."""
    back = round(phase.draw(30, 120) * phase.severity)
    first = int(np.argmax(phase.on)) + 1 if phase.on.any() else 1
    forces.rewind = np.where(phase.on, float(min(back, first - 1)), 0.0)
