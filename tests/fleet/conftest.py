"""Folders with the logs of many short runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rldk.testing.streams import faulty, healthy


def write_run(
    path: Path, fault: str | None = None, seed: int = 0, steps: int = 120, config: dict[str, Any] | None = None
) -> Path:
    """Write the log of a simulated run; `config` is what it was started with."""
    events = healthy("grpo", steps, seed) if fault is None else faulty(fault, profile="grpo", steps=steps, onset=40, seed=seed)
    for event in events:
        event.model_info["run_id"] = path.stem
    if config:
        events[0].model_info["config"] = config
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Four runs, of which one is critical and two have one name, a file of settings, and a file that is not a log."""
    folder = tmp_path / "store"
    write_run(folder / "a" / "run.jsonl", config={"learning_rate": 1e-6, "beta": 0.04, "seed": 1})
    write_run(folder / "b" / "run.jsonl", "entropy_explosion", seed=1, config={"learning_rate": 3e-5, "beta": 0.0, "seed": 2})
    write_run(folder / "c.jsonl", seed=2)
    write_run(folder / "<b>d.jsonl", seed=3)
    (folder / "settings.json").write_text(json.dumps({"learning_rate": 1e-6, "name": "x"}))
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 8)
    return folder
