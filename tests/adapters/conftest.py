"""Stores of trackers, written by the trackers themselves, each in a process of its own."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WANDB = """
import wandb
settings = wandb.Settings(mode="offline", silent=True, console="off", x_disable_stats=True, x_disable_meta=True)
for run_id, scale in (("first", 1.0), ("second", 2.0)):
    config = {"lr": 1e-5, "deep": {"a": 1}}
    run = wandb.init(project="project", dir=".", id=run_id, name=f"name of {run_id}", config=config, settings=settings)
    for step in range(6):
        row = {"loss": scale / (step + 1), "train": {"kl": 0.25 * step}, "policy/entropy": 3.0 - step, "flag": step > 2}
        row |= {"bad": [1.0, float("nan"), float("inf"), float("-inf"), 0.0, 1e300][step], "words": "so it goes", "list": [1, 2]}
        row |= {"histogram": wandb.Histogram([1, 2, 3])} if step == 3 else {}
        run.log(row, step=step * 10)
    run.finish()
"""

TRACKIO = """
import trackio
for project, names in (("alpha", ("one", "two")), ("beta", ("one",))):
    for name in names:
        trackio.init(project=project, name=name, config={"lr": 1e-5}, embed=False, auto_log_cpu=False, auto_log_gpu=False)
        for step in range(6):
            row = {"loss": 1.0 / (step + 1), "train": {"kl": 0.25 * step}, "words": "so it goes", "list": [1, 2]}
            row["bad"] = [1.0, float("nan"), float("inf"), float("-inf"), 0.0, 1e300][step]
            trackio.log(row, step=step * 10)
        trackio.finish()
from trackio.sqlite_storage import SQLiteStorage
SQLiteStorage.export_to_parquet()
"""


def _run(script: str, folder: Path, **environment: str) -> None:
    settings = {**os.environ, "HF_HUB_OFFLINE": "1", "HOME": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=settings, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def _needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


@pytest.fixture(scope="session")
def wandb_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `wandb` folder of two offline runs of six steps, 0 to 50."""
    _needs("wandb")
    folder = tmp_path_factory.mktemp("wandb-runs")
    _run(WANDB, folder, WANDB_CACHE_DIR=str(folder / "cache"), WANDB_CONFIG_DIR=str(folder / "config"))
    return folder / "wandb"


@pytest.fixture(scope="session")
def trackio_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two projects, `alpha` with the runs `one` and `two` and `beta` with `one`, of six steps each, 0 to 50."""
    _needs("trackio")
    folder = tmp_path_factory.mktemp("trackio")
    store = folder / "store"
    _run(TRACKIO, folder, TRACKIO_DIR=str(store), HF_HOME=str(folder / "hf"))
    return store


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, tuple[str, int]]]:
    """Everything in a folder, with the hash of its bytes and its time of change."""

    def take(folder: Path) -> dict[str, tuple[str, int]]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {
            str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
            for path in files
        }

    return take
