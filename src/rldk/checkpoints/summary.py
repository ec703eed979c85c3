"""`R_checkpoint_summary.csv`: one row a checkpoint, and a file that is whole or not there."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Any

from rldk.checkpoints.report import COLUMNS, CheckpointReport
from rldk.core.errors import LogWriteError

__all__ = ["add_to_summary", "write_summary"]


def write_summary(path: str | Path, reports: Iterable[CheckpointReport]) -> Path:
    """Write the table of these checkpoints; what stood in the file before is replaced."""
    return _write(Path(path), [_texts(report.row()) for report in reports])


def add_to_summary(path: str | Path, report: CheckpointReport) -> Path:
    """Put a checkpoint's row at the end of the table.

    Rows of the same checkpoint, and of later steps, belong to a run that was taken up again further back: they go.
    """
    target = Path(path)
    rows = [row for row in _read(target) if row["checkpoint"] != report.path.name and not _later(row["step"], report.step)]
    return _write(target, [*rows, _texts(report.row())])


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    """Numbers to the last digit; what is not known is an empty cell, and never 0."""
    unknown = {name for name, value in row.items() if value is None or (isinstance(value, float) and isnan(value))}
    return {name: "" if name in unknown else str(value) for name, value in row.items()}


def _later(step: str, than: int | None) -> bool:
    return than is not None and step.isdigit() and int(step) >= than


def _read(path: Path) -> list[dict[str, str]]:
    with suppress(OSError, ValueError, csv.Error), path.open(newline="", encoding="utf-8") as file:
        return [{name: row.get(name) or "" for name in COLUMNS} for row in csv.DictReader(file)]
    return []


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except OSError as error:
        raise LogWriteError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
    return path
