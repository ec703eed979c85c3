"""Rows that belong together: checkpoints that hold the beginning of a longer run, and runs that share a name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rldk.core.errors import RLDKError
from rldk.fleet.row import path_of
from rldk.ingest.duplicates import begins, name_apart
from rldk.ingest.read import LogFile, read_log
from rldk.runs.run import Run

__all__ = ["mark_parts", "name_rows"]

Row = dict[str, Any]


def mark_parts(rows: Sequence[Row], changed: Collection[str]) -> None:
    """Set `part_of` of each row whose run is the beginning of a longer one from another file.

    Only pairs of which one file has `changed` are compared; what was found of the others stays, while the longer file exists.
    """
    there = {row["path"] for row in rows}
    by_mark: dict[int, list[Row]] = {}
    for row in sorted((row for row in rows if row.get("marks")), key=lambda row: row["events"], reverse=True):
        known = row.get("part_of")
        if row["path"] in changed or known in changed or known not in there:
            row["part_of"] = None
        if row.get("part_of") is None:
            alike = min((by_mark.get(mark, []) for mark in row["marks"]), key=len)
            worth = [other for other in alike if other["path"] != row["path"] and {other["path"], row["path"]} & set(changed)]
            row["part_of"] = next((other["path"] for other in worth if _is_beginning(other, row)), None)
        if row["part_of"] is None:
            for mark in row["marks"]:
                by_mark.setdefault(mark, []).append(row)


def _is_beginning(longer: Row, row: Row) -> bool:
    try:
        return begins(_whole(longer), _whole(row))
    except (RLDKError, OSError, IndexError):
        return False  # it has changed since it was judged, or is gone


def _whole(row: Row) -> Run:
    return read_log(LogFile(path_of(row["path"]))).runs[row["number"]]


def name_rows(rows: Sequence[Row]) -> None:
    """Give each run a `name` that no other has."""
    runs = [row for row in rows if not row.get("error")]
    named = [SimpleNamespace(run_id=row["run_id"], path=Path(row["path"])) for row in runs]
    name_apart(named)
    for row, run in zip(runs, named, strict=True):
        row["name"] = run.run_id
