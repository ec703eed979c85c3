"""Runs that the panels are made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.runs import Run
from rldk.testing.streams import faulty


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """A run as it is read from a log with these events."""

    def make(events: list[Event], run_id: str = "run") -> Run:
        path = tmp_path_factory.mktemp("run") / "run_events.jsonl"
        for event in events:
            event.model_info["run_id"] = run_id
        path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
        return read_runs(path).runs[0]

    return make


@pytest.fixture(scope="session")
def broken(run_of: Callable[..., Run]) -> Run:
    """A PPO run that comes apart."""
    return run_of(faulty("entropy_explosion", "ppo", steps=300, onset=150, seed=3), "broken")
