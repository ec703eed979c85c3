"""Two processes, as torchrun starts them: both probe, one writes, statistics are of both, and a stop is everybody's."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))

from warm_processes import warm  # noqa: E402


@pytest.mark.parametrize("kind", ["ppo", "grpo"])
def test_two_processes(kind: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("trl_two_processes.py")
    told = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    for done in warm().run_ranks(2, [str(script), str(tmp_path), kind], cwd=tmp_path, env=told):
        assert done.returncode == 0, done.stderr[-3000:]
    tmp_path = tmp_path / kind
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert first["step"] == second["step"] < 8 and first["stop"] and second["stop"]
    assert first["stopped"] is second["stopped"] is (kind == "ppo")
    assert first["events"] == first["step"] and second["events"] == 0  # one judges and writes
    events = [json.loads(line) for line in (tmp_path / "rldk" / "two_events.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events] == list(range(1, first["step"] + 1))
    assert len((tmp_path / "own.jsonl").read_text().splitlines()) == len(events)
    with (tmp_path / "rldk" / "two_metrics.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(events)
    assert events[-1]["metrics"]["batch_size"] == 32
    if kind == "ppo":
        assert first["responses"] == second["responses"] == 32  # 16 of each
        assert all(event["metrics"]["update_applied"] == 1 for event in events)
