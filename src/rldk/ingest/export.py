"""Write what was read: CSV, parquet, or JSON lines in the shape of the event log."""

from __future__ import annotations

from pathlib import Path

from rldk.core.errors import LogWriteError, UsageError, require
from rldk.core.files import replacing
from rldk.core.text import csv_cell
from rldk.ingest.read import Ingested

__all__ = ["check_output", "write_runs"]

SUFFIXES = (".csv", ".parquet", ".jsonl")


def check_output(path: Path) -> Path:
    """Refuse an output that cannot be written before anything is read."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"Expected the output to end in one of {', '.join(SUFFIXES)}, got {path.name!r}.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: give the name of a file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"The folder {path.absolute().parent} does not exist: create it first.")
    if path.suffix == ".parquet":
        require("pyarrow", extra="parquet", purpose="Writing parquet")
    return path


def write_runs(result: Ingested, path: Path) -> None:
    """Write all runs to a file, which appears whole or not at all."""
    try:
        with replacing(path) as part:
            _write(result, path.suffix, part)
    except OSError as error:
        raise LogWriteError(f"{path} cannot be written: {error.strerror or error}.") from error


def _write(result: Ingested, suffix: str, path: Path) -> None:
    if suffix == ".csv":
        frame = result.frame().rename(columns=csv_cell)
        for name in frame.select_dtypes(exclude="number").columns:
            frame[name] = frame[name].map(csv_cell)
        frame.to_csv(path, index=False)
    elif suffix == ".parquet":
        result.frame().to_parquet(path, index=False, engine="pyarrow")
    else:
        with path.open("wb") as file:
            for run in result.runs:
                for event in run.events():
                    file.write(event.to_json() + b"\n")
