"""Stores of trackers, written by the trackers themselves, each in a process of its own; and logs of text."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.adapter import Adapter
from rldk.ingest.choose import choose
from rldk.runs.run import Run
from rldk.runs.table import NUMBER

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
    own = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}  # W&B used here would serve it too
    settings = {**own, "HF_HUB_OFFLINE": "1", "HOME": str(folder), **environment}
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


class TextLog:
    """Writes a log of text, reads it by its content, and cuts it off at every byte."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str | bytes, name: str = "some_file") -> Path:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def read(self, text: str | bytes, adapter: str, **options: Any) -> tuple[Adapter, list[Run]]:
        """The adapter that was chosen, which must be the one named, and the runs it gives."""
        chosen = choose(self.write(text), **options)
        assert chosen.name == adapter, chosen.why
        return chosen, chosen.runs()

    def run(self, text: str | bytes, adapter: str, **options: Any) -> Run:
        """The only run of a log."""
        _, (run,) = self.read(text, adapter, **options)
        return run

    @staticmethod
    def values(run: Run, name: str) -> list[float | None]:
        """A metric's values; `None` where it was not logged."""
        column = run.columns[name]
        pairs = zip(column.values.tolist(), column.state.tolist(), strict=True)
        return [value if state == NUMBER else None for value, state in pairs]

    def cells(self, runs: list[Run]) -> set[tuple[int, str, str]]:
        """All that runs say, as step, metric and value."""
        return {
            (step, name, repr(value))
            for run in runs
            for name in run.columns
            for step, value in zip(run.steps.tolist(), self.values(run, name), strict=True)
            if value is not None
        }

    def cut_everywhere(self, text: str | bytes, kind: type[Adapter]) -> None:
        """Cut off at any byte, a log gives no number that the whole one has not, and raises nothing but `ReadError`."""
        whole = text.encode() if isinstance(text, str) else text
        truth = self.cells(kind(self.write(whole)).runs())
        assert truth
        for end in range(len(whole)):
            cut = kind(self.write(whole[:end]))
            try:
                found = self.cells(cut.runs()) if cut.can_handle() else set()
            except ReadError:
                continue
            assert not found - truth, (whole[max(0, end - 60) : end], found - truth)


@pytest.fixture
def text_log(tmp_path: Path) -> TextLog:
    """A folder for logs of text, and the ways to read them."""
    return TextLog(tmp_path)
