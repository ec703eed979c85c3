"""Logs of simulated runs to put into stores."""

from __future__ import annotations

from pathlib import Path

from rldk.testing.streams import faulty, healthy


def write_run(path: Path, fault: str | None = None, seed: int = 0, steps: int = 120) -> Path:
    """Write the log of a simulated run."""
    events = healthy("grpo", steps, seed) if fault is None else faulty(fault, profile="grpo", steps=steps, onset=40, seed=seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return path
