"""Logs as tracking libraries keep them, written by those libraries."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from speed.logs import GRPO, NAMES, values

__all__ = ["STORES"]

FEW = GRPO[:5]

WANDB = """
import sys, wandb
sys.path.insert(0, sys.argv[2])
from speed.logs import GRPO, values
run = wandb.init(project="bench", mode="offline", settings=wandb.Settings(console="off", x_disable_stats=True, silent=True))
for step in range(int(sys.argv[1])):
    run.log(dict(zip(GRPO[:5], values(step))), step=step)
run.finish()
"""
TRACKIO = """
import sys
sys.path.insert(0, sys.argv[2])
from speed.logs import GRPO, values
from trackio.sqlite_storage import SQLiteStorage
SQLiteStorage.init_db("bench")
rows = range(int(sys.argv[1]))
SQLiteStorage.bulk_log("bench", "run", [dict(zip(GRPO[:5], values(step))) for step in rows], steps=list(rows))
"""
MLFLOW = """
import sys
from mlflow.tracking import MlflowClient
client = MlflowClient(tracking_uri="sqlite:///" + sys.argv[1])
run = client.create_run(client.create_experiment("bench", artifact_location="/nowhere"), run_name="run")
client.log_metric(run.info.run_id, "loss", 1.0, step=0)
"""


def _in_child(script: str, folder: Path, *arguments: str, **more: str) -> None:
    """Run a script in a process of its own: its settings and threads are not ours."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, env={**os.environ, **more}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])


def _parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    columns = zip(*map(values, range(rows)), strict=True)
    table = pa.table({"step": list(range(rows)), **{name: list(cells) for name, cells in zip(NAMES, columns, strict=True)}})
    pyarrow.parquet.write_table(table, path)


def _tensorboard(path: Path, rows: int) -> None:
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(path), max_queue_size=10_000)
    for step in range(rows):
        for tag, value in zip(FEW, values(step), strict=False):
            summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=f"train/{tag}", simple_value=value)])
            writer.add_event(event_pb2.Event(wall_time=1.7e9 + step, step=step, summary=summary))
    writer.close()


def _wandb(path: Path, rows: int) -> None:
    here = str(Path(__file__).resolve().parents[1])
    _in_child(WANDB, path, str(rows), here, WANDB_CACHE_DIR=str(path / "cache"), WANDB_CONFIG_DIR=str(path / "config"))


def _trackio(path: Path, rows: int) -> None:
    here = str(Path(__file__).resolve().parents[1])
    _in_child(TRACKIO, path, str(rows), here, TRACKIO_DIR=str(path), HF_HOME=str(path / "hf"))


def _mlflow(path: Path, rows: int) -> None:
    """The schema is MLflow's; the rows go in by hand, since its client takes minutes for so many."""
    database = path / "mlflow.db"
    _in_child(MLFLOW, path, str(database), MLFLOW_DISABLE_TELEMETRY="true")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (run,) = connection.execute("SELECT run_uuid FROM runs").fetchone()
        connection.executemany(
            "INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
            (
                (name, value, 1_700_000_000_000 + step, run, step)
                for step in range(1, rows)
                for name, value in zip(FEW, values(step), strict=False)
            ),
        )
        connection.commit()


STORES: dict[str, tuple[int, Callable[[Path, int], None], str]] = {
    "parquet": (10_000, _parquet, "pyarrow.parquet"),
    "TensorBoard": (10_000, _tensorboard, "tensorboard.backend.event_processing.event_file_loader"),
    "W&B, offline": (10_000, _wandb, "wandb.proto.wandb_internal_pb2"),
    "trackio": (10_000, _trackio, "sqlite3"),
    "MLflow": (10_000, _mlflow, "sqlite3"),
}
"""Every store, the rows per second it must be read at, how to write one, and the library it is read with."""
