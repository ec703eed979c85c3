"""The soak in miniature: its parts run, count what they do, and find no promise broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak"


def part(name: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SOAK / f"{name}.py"), "2", "7", *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_writers_lose_nothing() -> None:
    found = part("writers")
    assert found["broken"] == [] and found["writers"] > 0 and found["events_acknowledged_by_writers"] > 0


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on files")
def test_nothing_reaches_a_training_that_has_everything_against_it() -> None:
    found = part("events")
    assert found["broken"] == [] and found["events_observed"] > 0 and found["events_lost"] == 0


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_mutated_logs_stay_within_the_limits() -> None:
    found = part("files", "mutated", "noise")
    assert found["broken"] == [] and found["hostile_files"] > 0
