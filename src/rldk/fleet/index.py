"""The index: a table of verdicts in Parquet that is updated by judging only the logs that have changed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rldk._version import __version__
from rldk.core.errors import ReadError, RLDKError, UsageError, require
from rldk.core.files import replacing
from rldk.fleet.parts import mark_parts, name_rows
from rldk.fleet.row import index_file, name_of, to_columns, unread_row, with_settings
from rldk.fleet.scan import Engine, choose_jobs, in_processes
from rldk.fleet.work import Reading
from rldk.ingest.discovery import candidates, stamp_of
from rldk.ingest.read import LogFile, reason_for

__all__ = ["Index", "Update", "current_rows", "index_path", "judged_rows", "read_index", "update_index"]

_SETTINGS = b"rldk.settings"
_FORMAT = 2

OnLog = Callable[[Path, int, list[dict[str, Any]]], None]
"""Called with each log as soon as it is judged: its path, its size and its rows."""


@dataclass(slots=True)
class Index:
    """The rows of an index by column, as `pyarrow` holds them, and the file they are in."""

    path: Path
    table: Any

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries; settings that a run does not have are left out."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows


@dataclass(slots=True)
class Update:
    """What an update did: logs that were judged, that were unchanged, and that are gone; and the files without a run."""

    judged: int = 0
    unchanged: int = 0
    gone: int = 0
    unread: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether the rows are others than those of the index."""
        return bool(self.judged or self.gone)


def index_path(store: Path, given: str | None = None) -> Path:
    """Where the index of a store is: the file that was given, else `.rldk/index.parquet` in the folder."""
    return Path(given) if given else store / ".rldk" / "index.parquet"


def read_index(path: Path) -> Index:
    """Read an index; one that does not exist is an error that says how to make it."""
    parquet = require("pyarrow.parquet", extra="fleet", purpose="The index")
    if not path.exists():
        raise ReadError(f"There is no index at {path}: make it with `rldk index {path.parent.parent}`.")
    try:
        return Index(path, parquet.read_table(path))
    except (OSError, ValueError) as error:
        raise ReadError(f"{path} is not an index that rldk can read ({error}): remove it and run `rldk index` again.") from error


def update_index(
    store: Path, reading: Reading, *, path: Path | None = None, jobs: int | None = None, engine: Engine | None = None,
    on_log: OnLog | None = None,
) -> tuple[Index, Update]:  # fmt: skip
    """Judge the logs of a folder that are new or have changed by size or time, and write the index again.

    The file is replaced as a whole at the end; rows of logs that are gone are left out. With other settings than those of the
    existing index, all logs are judged.
    """
    parquet = require("pyarrow.parquet", extra="fleet", purpose="The index")
    target = path or index_path(store)
    rows, done = current_rows(store, reading, path=target, jobs=jobs, engine=engine, on_log=on_log)
    table = to_columns(rows).replace_schema_metadata({_SETTINGS: _settings_of(reading)})
    if done.changed or not target.exists():
        with replacing(target) as part:
            parquet.write_table(table, part, compression="zstd")
    return Index(target, table), done


def current_rows(
    store: Path, reading: Reading, *, path: Path | None = None, jobs: int | None = None, engine: Engine | None = None,
    on_log: OnLog | None = None,
) -> tuple[list[dict[str, Any]], Update]:  # fmt: skip
    """The rows of all logs of a folder as they are now: from the index those that have not changed, the others judged.

    Nothing is written. Without an index, or with one of other settings, all logs are judged.
    """
    if not store.is_dir():
        raise UsageError(f"Expected the folder of a store, got {store}.")
    begun = time.monotonic()
    skipped: list[tuple[str, str]] = []
    found_logs = candidates(store, reading.adapter_hint, lambda path, why: skipped.append((name_of(path), why)))
    places = {name_of(found): found for found in found_logs}
    stamps = {name: stamp for name, found in places.items() if (stamp := stamp_of(found)) is not None}
    known = _known_rows(path or index_path(store), _settings_of(reading))
    fresh = {name: rows for name, rows in known.items() if stamps.get(name) == _stamp(rows[0])}
    logs = [LogFile(places[name], searching=True) for name in stamps if name not in fresh]
    used = engine or in_processes(choose_jobs(logs, jobs))
    new: dict[str, list[dict[str, Any]]] = {}
    for log, rows in judged_rows(used, reading, logs):
        size, changed = stamps[name_of(log.path)]
        new[name_of(log.path)] = [{**row, "file_bytes": size, "file_changed": changed} for row in rows]
        if on_log is not None:
            on_log(log.path, size, rows)
    rows = [row for name in stamps for row in new.get(name) or fresh[name]]
    mark_parts(rows, changed=set(new))
    name_rows(rows)
    unread = [*((row["path"], row["error"]) for row in rows if row.get("error")), *skipped]
    return rows, Update(len(new), len(fresh), len(known.keys() - stamps.keys()), unread, time.monotonic() - begun)


def _stamp(row: dict[str, Any]) -> tuple[int, int]:
    return row["file_bytes"], row["file_changed"]


def _settings_of(reading: Reading) -> bytes:
    """What verdicts depend on besides the logs; with another value all of them are judged again."""
    told = repr((_FORMAT, __version__, reading.config, reading.adapter_hint, sorted(reading.field_map.items())))
    return hashlib.sha256(told.encode()).hexdigest().encode()


def _known_rows(path: Path, settings: bytes) -> dict[str, list[dict[str, Any]]]:
    """The rows of the existing index by path; none where it was made with other settings or cannot be read."""
    if not path.exists():
        return {}
    parquet = require("pyarrow.parquet", extra="fleet", purpose="The index")
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError):
        return {}
    if (table.schema.metadata or {}).get(_SETTINGS) != settings:
        return {}
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["path"], []).append(with_settings(row))
    return found


def judged_rows(engine: Engine, reading: Reading, logs: Sequence[LogFile]) -> Iterator[tuple[LogFile, list[dict[str, Any]]]]:
    """The rows of each log, as they are ready; of one that cannot be read, one row that says why."""
    answers: Iterable[tuple[int, list[dict[str, Any]] | RLDKError]] = engine(partial(index_file, reading), logs)  # type: ignore[arg-type,assignment]
    for number, answer in answers:
        log = logs[number]
        if isinstance(answer, RLDKError):
            answer = [unread_row(log.path, reason_for(answer, log.path))]
        yield log, answer
