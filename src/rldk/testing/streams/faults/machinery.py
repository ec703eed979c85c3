"""Faults of what runs the training: speed, memory, the sampler, the counter."""

from __future__ import annotations

import numpy as np

from rldk.testing.streams.forces import Forces, Phase

__all__: list[str] = []


def throughput_drop(forces: Forces, phase: Phase) -> None:
    """Steps take three times as long within some tens of steps, though the work is the same."""
    forces.seconds = phase.toward(phase.draw(2.5, 5.0), phase.draw(3, 30))


def memory_pressure(forces: Forces, phase: Phase) -> None:
    """A leak: memory fills at an even pace until there is none, and steps slow down at the end."""
    room = 80.0 - phase.traits.memory_gb
    width = phase.draw(200, 400) / phase.severity
    forces.leak = room * np.minimum(phase.since / width, 1.0)
    forces.seconds = 1.0 + 0.6 * np.clip(phase.since / width - 0.9, 0.0, 0.1) * 10.0


def train_inference_mismatch(forces: Forces, phase: Phase) -> None:
    """Trainer and sampler drift apart on the same tokens, tens of times further than before; learning suffers."""
    forces.mismatch = phase.toward(phase.draw(40.0, 120.0), phase.draw(20, 100))
    forces.learn = 1.0 - 0.7 * phase.ramp(60)
    forces.skill_pull = 0.005 * phase.ramp(80)


def step_regression(forces: Forces, phase: Phase) -> None:
    """The run is taken up again from an older checkpoint and the counter falls back."""
    back = round(phase.draw(30, 120) * phase.severity)
    first = int(np.argmax(phase.on)) + 1 if phase.on.any() else 1
    forces.rewind = np.where(phase.on, float(min(back, first - 1)), 0.0)
