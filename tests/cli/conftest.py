"""Logs of simulated runs, for the commands that judge them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rldk.core.event import Event
from rldk.testing.streams import faulty, healthy


def write(path: Path, events: list[Event], run_id: str | None = None) -> Path:
    for event in events:
        event.model_info["run_id"] = run_id or path.stem
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return path


def clipped(rows: int = 80) -> list[Event]:
    """A run with one warning, raised at row 27, and no critical."""
    return [
        Event(
            10 * n, {"clip_frac": 0.1 if n < 23 else 0.8, "reward_mean": 0.3 + 0.005 * n + 0.02 * (n % 3), "lr": 1e-5}, 100.0 + n
        )
        for n in range(rows)
    ]


@pytest.fixture
def make_log(tmp_path: Path) -> Callable[..., str]:
    """Write a run that is `healthy`, a `warning`, `critical` or `supervised`; gives its path."""

    def make(kind: str, name: str | None = None, run_id: str | None = None) -> str:
        events = {
            "healthy": lambda: healthy("ppo", 200, seed=0),
            "warning": clipped,
            "critical": lambda: faulty("entropy_explosion", seed=1, steps=250, onset=80),
            "supervised": lambda: [Event(n, {"loss": 0.5 + 0.01 * (n % 3), "lr": 1e-5}) for n in range(50)],
        }[kind]()
        return str(write(tmp_path / (name or f"{kind}.jsonl"), events, run_id))

    return make
