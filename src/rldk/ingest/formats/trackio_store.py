"""trackio: a project's local database, or the folder of all projects."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from rldk.core.errors import ReadError
from rldk.core.jsonio import loads
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.sqlite import columns_of, has_tables, open_database, report_rows
from rldk.ingest.formats.stores import FileProgress, list_folder, report, unique_names
from rldk.ingest.formats.wandb_store import plain_row
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems
from rldk.runs.row_axes import parse_seconds

__all__ = ["TrackioAdapter"]

_TABLES = {"metrics": frozenset({"timestamp", "run_name", "step", "metrics"})}
_OWN_SUFFIXES = frozenset({".db", ".db-shm", ".db-wal", ".hash", ".lock", ".parquet"})
_MOST_FILES = 1_000


class TrackioAdapter(Adapter):
    """Reads the table of metrics of a project's database: a JSON object for each step of each run.

    A folder is read as a whole if it is trackio's own: databases of projects and what trackio puts beside them.
    """

    name: ClassVar[str] = "trackio"
    title: ClassVar[str] = "trackio's local database"
    folders: ClassVar[bool] = True

    def can_handle(self) -> bool:
        if self.source.is_folder:
            entries = [entry for entry in list_folder(self.source.path, _MOST_FILES) if entry.is_file()]
            own = all(Path(entry.name).suffix in _OWN_SUFFIXES for entry in entries)
            found = own and bool(_databases(self.source.path))
            self.why = "a folder of trackio's databases" if found else "a folder that is not trackio's own"
        else:
            found = has_tables(self.source.path, _TABLES)
            self.why = f"{'a' if found else 'no'} database with trackio's table of metrics"
        return found

    def read(self) -> Iterator[Mapping[str, Any]]:
        files = _databases(self.source.path) if self.source.is_folder else [self.source.path]
        if not files:
            raise ReadError(f"No database of trackio in {self.source.path}.")
        account = FileProgress(files, self.progress)
        for path in files:
            problems = LineProblems()
            try:
                with open_database(path) as connection:
                    prefix = f"{path.stem}/" if len(files) > 1 else ""
                    yield from _rows(connection, prefix, problems, account.of(path), path.stat().st_size)
            except ReadError as error:
                if len(files) == 1:
                    raise
                problems.damage = str(error)
            report(self.problems, problems, path.name)


def _rows(
    connection: sqlite3.Connection, prefix: str, problems: LineProblems, progress: Progress, size: int
) -> Iterator[Mapping[str, Any]]:
    key = "run_id" if "run_id" in columns_of(connection, "metrics") else "run_name"  # without run_id before 0.24
    try:
        runs = connection.execute(f"SELECT DISTINCT {key}, run_name FROM metrics").fetchall()
        names = unique_names({str(run): str(name) for run, name in runs})
        (total,) = connection.execute("SELECT COUNT(*) FROM metrics").fetchone()
        query = connection.execute(f"SELECT {key}, step, timestamp, metrics FROM metrics ORDER BY rowid")
        for number, (run, step, timestamp, metrics) in enumerate(report_rows(query, total, size, progress), 1):
            row = _parse(metrics)
            if row is None:
                problems.add(number, "`metrics` is not a JSON object")
                continue
            run_id = prefix + names.get(str(run), str(run))
            yield {**row, "step": step, "wall_time": parse_seconds(str(timestamp)), "run_id": run_id}
    except sqlite3.DatabaseError as error:
        problems.damage = f"the database is damaged ({error}): what follows was not read"


def _parse(metrics: str | bytes) -> dict[str, Any] | None:
    try:
        row = loads(metrics.encode() if isinstance(metrics, str) else metrics)
    except (ValueError, AttributeError, TypeError):
        return None
    return plain_row(row.items()) if type(row) is dict else None


def _databases(folder: Path) -> list[Path]:
    paths = (Path(entry.path) for entry in list_folder(folder, _MOST_FILES) if entry.name.endswith(".db"))
    return [path for path in paths if has_tables(path, _TABLES)]
