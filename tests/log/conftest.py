from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.log import EventReader


@pytest.fixture
def event() -> Callable[..., Event]:
    """Make an event of a step, of any size."""

    def make(step: int, padding: int = 0) -> Event:
        return Event(step, {"loss": 1 / (step + 1)}, wall_time=float(step), notes=["x" * padding] if padding else [])

    return make


@pytest.fixture
def steps() -> Callable[[Path], list[int]]:
    """The steps in a log that must hold nothing but whole events."""

    def read(path: Path) -> list[int]:
        reader = EventReader(path)
        found = [event.step for event in reader]
        assert reader.summary() == ""
        content = path.read_bytes()
        assert not content or content.endswith(b"\n")
        return found

    return read


@pytest.fixture
def run_script() -> Callable[..., Any]:
    """Run a script in a process of its own; what it prints last is JSON."""

    def run(script: str, *arguments: object, timeout: float = 60) -> Any:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
