"""`make bench` runs; what it measures is for people to read, and is not asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.full
def test_the_benchmarks_run_in_small() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/run.py"), "--quick"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for said in ("ingest_runs", "pandas.read_json", "DuckDB", "EventWriter.write", "rldk --help", "event log", "memory"):
        assert said in done.stdout
    assert "MISS" not in done.stdout  # too small to be judged


def test_an_unknown_section_is_refused() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/run.py"), "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no section nonsense; there are ingest" in done.stderr
