"""Simulated runs, healthy and sick, to judge detectors by.

A run is simulated from its causes: skill, distance from the reference, entropy, length and the size of updates make a
state; responses are drawn from it one by one; the metrics are computed from them as a trainer would. Therefore they agree with
each other, and a fault moves every metric that it would really move. The seed determines everything, and a sick run is identical
to its healthy twin until the fault begins.

    from rldk.testing.streams import FAULTS, faulty, healthy, twin

    events = healthy("grpo", seed=7)
    events = faulty("entropy_explosion", onset=400, seed=7)
    same_until_400 = twin("entropy_explosion", seed=7)
"""

from __future__ import annotations

from rldk.testing.streams.faults import FAULTS, Fault
from rldk.testing.streams.simulate import Stream, faulty, healthy, simulate, twin
from rldk.testing.streams.traits import PROFILES, Traits

__all__ = ["FAULTS", "PROFILES", "Fault", "Stream", "Traits", "faulty", "healthy", "simulate", "twin"]
