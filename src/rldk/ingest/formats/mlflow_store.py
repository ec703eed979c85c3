"""MLflow: a database (`mlflow.db`), or a file store (`mlruns/`, one experiment of it, or one run).

The file store has one line `timestamp value step` for each value, in `<experiment>/<run>/metrics/<key>`.
"""

from __future__ import annotations

import os
import re
import sqlite3
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rldk.core.errors import ReadError
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.sqlite import columns_of, has_tables, open_database, report_rows
from rldk.ingest.formats.stores import FileProgress, Point, first_bytes, gather, list_folder, report, unique_names, walk_files
from rldk.log.lines import iter_lines
from rldk.log.problems import LineProblems

__all__ = ["MLflowAdapter"]

_FIELD = re.compile(rb"^(\w{1,100}):(.*)$", re.MULTILINE)
_META_BYTES = 64 << 10
_MOST_KEYS = 20_000
_AT_ONCE = 65_536
_MOST_PARAMS, _PARAM_BYTES = 1_000, 6_000


@dataclass(frozen=True)
class StoredRun:
    """The folder of a run, and what its `meta.yaml` says."""

    folder: Path
    run_id: str
    name: str | None
    started: int
    deleted: bool

    def metric_files(self) -> dict[str, Path]:
        """The file of each metric; a key with slashes is a path."""
        root = self.folder / "metrics"
        return {path.relative_to(root).as_posix(): path for path in walk_files(root, depth=8, most=_MOST_KEYS)}

    def params(self) -> dict[str, str]:
        """What the run was started with, as texts."""
        root = self.folder / "params"
        files = list(islice(walk_files(root, depth=8, most=_MOST_KEYS), _MOST_PARAMS)) if os.path.isdir(root) else []  # noqa: PTH112
        return {
            path.relative_to(root).as_posix(): first_bytes(path, _PARAM_BYTES).decode("utf-8", "replace").strip()
            for path in files
        }


def find_runs(root: Path) -> Iterator[StoredRun]:
    """The runs of a store, of an experiment in it, or the one whose folder this is."""
    run = _read_run(root)
    if run is not None:
        yield run
        return
    for inner in [root] if _has_meta(root) else _folders_with_meta(root):
        for folder in _folders_with_meta(inner):
            run = _read_run(folder)
            if run is not None:
                yield run


def _folders_with_meta(folder: Path) -> Iterator[Path]:
    for entry in list_folder(folder):
        if entry.is_dir() and _has_meta(Path(entry.path)):
            yield Path(entry.path)


def _has_meta(folder: Path) -> bool:
    return os.path.isfile(folder / "meta.yaml")  # noqa: PTH113  `Path.is_file` raises where it may not look


def _read_run(folder: Path) -> StoredRun | None:
    """The run of a folder; `None` where its `meta.yaml` is not that of a run."""
    text = first_bytes(folder / "meta.yaml", _META_BYTES)
    fields = {key.decode(): value.strip(b" \t\r").strip(b"'\"").decode("utf-8", "replace") for key, value in _FIELD.findall(text)}
    run_id = fields.get("run_id") or fields.get("run_uuid")
    if not run_id or not os.path.isdir(folder / "metrics"):  # noqa: PTH112
        return None
    tag = first_bytes(folder / "tags" / "mlflow.runName", 250).decode("utf-8", "replace").strip()
    started = fields.get("start_time", "")
    return StoredRun(
        folder,
        run_id,
        fields.get("run_name") or tag or None,
        int(started) if started.isdecimal() else 0,
        fields.get("lifecycle_stage") == "deleted",
    )


def points_of_run(files: dict[str, Path], problems: LineProblems, account: FileProgress) -> Iterator[Point]:
    """The values of a run in the order in which they were logged; those of the same millisecond by their steps."""
    keys = list(files)
    which, steps, times, values = array("i"), array("q"), array("q"), array("d")
    for number, (key, path) in enumerate(files.items()):
        found = LineProblems()
        for line_number, line in iter_lines(path, problems=found, progress=account.of(path)):
            value = _parse(line)
            if value is None or line_number == found.unterminated:
                found.add(line_number, "not `timestamp value step`")
                continue
            which.append(number)
            times.append(value[0])
            values.append(value[1])
            steps.append(value[2])
        report(problems, found, key)
    logged, at = np.frombuffer(steps, dtype=np.int64), np.frombuffer(times, dtype=np.int64)
    columns = (logged, at / 1000, np.frombuffer(which, dtype=np.intc), np.frombuffer(values))
    order = np.lexsort((logged, at))
    for start in range(0, len(order), _AT_ONCE):
        part = order[start : start + _AT_ONCE]
        for step, time, number, value in zip(*(column[part].tolist() for column in columns), strict=True):
            yield step, time, keys[number], value


def _parse(line: bytes) -> tuple[int, float, int] | None:
    """Timestamp, value and step of a line; the step is missing in old stores, and a data set may follow it."""
    fields = line.split()
    if len(fields) not in (2, 3, 5):
        return None
    try:
        time, value, step = int(fields[0]), float(fields[1]), int(fields[2]) if len(fields) > 2 else 0
    except ValueError:
        return None
    return (time, value, step) if abs(time) < 2**62 and abs(step) < 2**62 else None


_TABLES = {
    "metrics": frozenset({"key", "value", "timestamp", "run_uuid"}),
    "runs": frozenset({"run_uuid", "lifecycle_stage", "start_time"}),
}
_LARGEST = 1.7976931348623157e308
_SYSTEM = "system/"
_KEPT = "r.lifecycle_stage IS NOT 'deleted'"


class MLflowAdapter(Adapter):
    """Reads the metrics of all runs that were not deleted.

    MLflow keeps single values with the time at which they were logged; values of one step that were logged after each
    other are one row. What MLflow measures of the machine (`system/…`) has steps of its own and is left out.
    """

    name: ClassVar[str] = "mlflow"
    title: ClassVar[str] = "MLflow's database or folder of runs"
    folders: ClassVar[bool] = True

    def can_handle(self) -> bool:
        if self.source.is_folder:
            found = next(find_runs(self.source.path), None) is not None
            self.why = "a folder of MLflow runs" if found else "a folder without MLflow runs"
        else:
            found = has_tables(self.source.path, _TABLES)
            self.why = "a database with MLflow's tables" if found else "no database with MLflow's tables"
        return found

    def read(self) -> Iterator[Mapping[str, Any]]:
        return self._read_files() if self.source.is_folder else self._read_database()

    def _read_files(self) -> Iterator[Mapping[str, Any]]:
        stored = sorted(find_runs(self.source.path), key=lambda run: (run.started, run.run_id))
        kept = [run for run in stored if not run.deleted]
        if not stored:
            raise ReadError(f"No MLflow run in {self.source.path}.")
        self._say_deleted(len(stored) - len(kept))
        names = unique_names({run.run_id: run.name for run in kept})
        files = {run.run_id: self._without_system(run.metric_files()) for run in kept}
        account = FileProgress([path for paths in files.values() for path in paths.values()], self.progress)
        self.settings.update((names[run.run_id], run.params()) for run in kept)
        for run in kept:
            yield from gather(points_of_run(files[run.run_id], self.problems, account), names[run.run_id])

    def _without_system(self, files: dict[str, Path]) -> dict[str, Path]:
        training = {key: path for key, path in files.items() if not key.startswith(_SYSTEM)}
        self._say_system(len(training) < len(files))
        return training

    def _read_database(self) -> Iterator[Mapping[str, Any]]:
        path = self.source.path
        with open_database(path) as connection:
            try:
                yield from self._rows(connection, path.stat().st_size)
            except sqlite3.DatabaseError as error:
                self.problems.damage = f"the database is damaged ({error}): what follows was not read"

    def _rows(self, connection: sqlite3.Connection, size: int) -> Iterator[Mapping[str, Any]]:
        name = "name" if "name" in columns_of(connection, "runs") else "NULL"
        runs = connection.execute(f"SELECT run_uuid, {name} FROM runs r WHERE {_KEPT}").fetchall()
        names = unique_names({str(run): None if name is None else str(name) for run, name in runs})
        (every,) = connection.execute("SELECT COUNT(*) FROM runs").fetchone()
        self._say_deleted(every - len(runs))
        self._read_params(connection, names)
        of_machine = connection.execute("SELECT 1 FROM metrics WHERE key LIKE 'system/%' LIMIT 1").fetchone()
        self._say_system(of_machine is not None)
        for run, points in groupby(self._points(connection, size), itemgetter(0)):
            yield from gather(map(itemgetter(1), points), names.get(run, run))

    def _read_params(self, connection: sqlite3.Connection, names: Mapping[str, str]) -> None:
        """What each run was started with; databases of before MLflow 1 have no such table."""
        if not columns_of(connection, "params") >= {"run_uuid", "key", "value"}:
            return
        found: dict[str, dict[str, Any]] = {}
        for run, key, value in connection.execute("SELECT run_uuid, key, value FROM params LIMIT 1000000"):
            found.setdefault(str(run), {})[str(key)] = value
        self.settings.update((names[run], params) for run, params in found.items() if run in names)

    def _points(self, connection: sqlite3.Connection, size: int) -> Iterator[tuple[str, Point]]:
        """The values of all runs, the runs in the order in which they began."""
        there = columns_of(connection, "metrics")
        step = "CAST(m.step AS INTEGER)" if "step" in there else "0"
        is_nan = "m.is_nan" if "is_nan" in there else "0"
        (total,) = connection.execute("SELECT COUNT(*) FROM metrics").fetchone()
        query = connection.execute(
            f"SELECT m.run_uuid, {step}, CAST(m.timestamp AS REAL), m.key, CAST(m.value AS REAL), {is_nan}"
            f" FROM metrics m JOIN runs r USING (run_uuid) WHERE {_KEPT} AND m.key NOT LIKE 'system/%'"
            f" AND m.value NOTNULL AND m.timestamp NOTNULL AND {step} NOTNULL"
            f" ORDER BY r.start_time, m.run_uuid, m.timestamp, {step}, m.rowid"
        )
        for run, logged_step, milliseconds, key, value, not_a_number in report_rows(query, total, size, self.progress):
            yield str(run), (logged_step, milliseconds / 1000, str(key), _value(value, not_a_number))

    def _say_deleted(self, runs: int) -> None:
        if runs:
            self.notes.append(f"{runs} deleted run(s) left out")

    def _say_system(self, there: bool) -> None:
        note = "`system/…` metrics left out: their steps count samples of the machine, not of the training"
        if there and note not in self.notes:
            self.notes.append(note)


def _value(value: float, is_nan: bool) -> float:
    """The number that was logged: MLflow's tables have no `NaN`, and the largest float stands for infinity."""
    if is_nan:
        return float("nan")
    if abs(value) >= _LARGEST:
        return float("inf") if value > 0 else float("-inf")
    return value
