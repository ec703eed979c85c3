"""`R_checkpoint_summary.csv`: one row per checkpoint, in a file that is complete or absent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any

from rldk.checkpoints.report import COLUMNS, CheckpointReport
from rldk.core.errors import LogWriteError
from rldk.core.files import write_text
from rldk.core.text import clean, csv_cell

__all__ = ["add_to_summary", "keep_up_to", "read_summary", "write_summary"]


_MAX_ROWS, _MAX_COLUMNS, _MAX_LINE = 2000, 60, 1 << 16


def read_summary(path: Path) -> list[dict[str, str]]:
    """The rows of a table of checkpoints as a page may show them, whoever wrote it: its first 2000, with short cells."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        table = csv.reader(line.replace("\0", "") for line in iter(partial(file.readline, _MAX_LINE), ""))
        columns = [clean(name, 60) for name in next(table, [])][:_MAX_COLUMNS]
        rows = [[clean(cell, 300) for cell in row] for row in islice(table, _MAX_ROWS)]
    return [dict(zip(columns, row + [""] * len(columns), strict=False)) for row in rows]


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


def keep_up_to(path: str | Path, step: int) -> Path:
    """Take out the rows of later steps, which a resumed run will write again."""
    target = Path(path)
    return _write(target, [row for row in _read(target) if not _later(row["step"], step + 1)])


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    """Numbers to the last digit; what is not known is an empty cell, and never 0."""
    unknown = {name for name, value in row.items() if value is None or (isinstance(value, float) and isnan(value))}
    return {name: "" if name in unknown else str(csv_cell(str(value))) for name, value in row.items()}


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
    try:
        return write_text(path, text.getvalue())
    except OSError as error:
        raise LogWriteError(f"{path} cannot be written: {error.strerror or error}.") from error
