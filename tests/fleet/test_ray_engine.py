"""`--engine ray` on a real Ray of two workers: one is killed half-way, and the table is the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rldk.cli.main import main
from rldk.fleet.index import read_index, update_index
from rldk.fleet.work import Reading

from .conftest import write_run

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venvs" / "ray" / "bin" / "python"
pytestmark = pytest.mark.full


@pytest.mark.skipif(not PYTHON.exists(), reason="Ray is not installed: `make .venvs/ray/.installed` sets it up")
def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in range(40):
        write_run(store / f"run{number:02}.jsonl", "entropy_explosion" if number % 5 == 0 else None, seed=number, steps=150)
    (store / "noise.bin").write_bytes(bytes(range(256)) * 8)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    script = [PYTHON, Path(__file__).with_name("ray_index.py"), store, tmp_path / "ray.parquet"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "judged 41, killed 1" in done.stdout
    here, _ = update_index(store, Reading(), path=tmp_path / "here.parquet", jobs=1)
    assert read_index(tmp_path / "ray.parquet").rows() == here.rows()


def test_without_ray_the_error_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run.jsonl")
    assert main(["scan", str(tmp_path), "--engine", "ray"]) == 2
    assert "pip install 'rldk[ray]'" in capsys.readouterr().err
    assert main(["scan", str(tmp_path), "--address", "127.0.0.1:6379"]) == 2
    assert "add --engine ray" in capsys.readouterr().err
