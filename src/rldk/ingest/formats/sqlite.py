"""SQLite databases of others: opened so that nothing in their folder is written, locked for long, or created."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from rldk.core.errors import ReadError
from rldk.ingest.formats.stores import first_bytes
from rldk.log.blocks import Progress

__all__ = ["columns_of", "has_tables", "open_database", "report_rows"]

_MAGIC = b"SQLite format 3\0"
_WAL_MODE = 2
_TRIES = 5
_PATIENCE = 1.0
_MAX_CELL_BYTES = 16 << 20
_REPORT_ROWS = 16_384

Row = TypeVar("Row")


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection.

    SQLite itself, asked to read a database in WAL mode, leaves a `-wal` and a `-shm` file beside it. So one without a
    journal is opened as a file that does not change, if it is in that mode; one that is locked or has a journal, whose
    writer died or is still at it, is read from a copy in a temporary folder, where SQLite may put it in order.
    """
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        if _is_in_wal_mode(path):
            uri += "&immutable=1"
        if _journals(path) or _is_locked(uri):
            with _copy(path) as copy, _connect(copy.as_uri()) as connection:
                yield connection
        else:
            with _connect(uri) as connection:
                yield connection
    except (sqlite3.Error, OSError) as error:
        raise ReadError(f"{path} cannot be read as a database: {error}.") from error


def columns_of(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns of a table; none where there is no such table (a view is not one: it would run what it likes)."""
    stored = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name = ?"
    found = connection.execute(stored, (table,)).fetchone()
    return frozenset(row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')) if found else frozenset()


def has_tables(path: Path, tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether a file is a database that has these tables, with at least these columns."""
    if first_bytes(path, len(_MAGIC)) != _MAGIC:
        return False
    try:
        with open_database(path) as connection:
            return all(columns_of(connection, table) >= columns for table, columns in tables.items())
    except ReadError:
        return False


def report_rows(rows: Iterable[Row], total: int, size: int, progress: Progress | None) -> Iterator[Row]:
    """Rows of a query, of so many in all; the progress is told as a share of the size of the database."""
    for number, row in enumerate(rows, 1):
        yield row
        if progress is not None and number % _REPORT_ROWS == 0:
            progress(size * number // max(total, number), size)
    if progress is not None:
        progress(size, size)


@contextmanager
def _connect(uri: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE)) as connection:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        if sys.version_info >= (3, 11):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_CELL_BYTES)  # of a cell, stored or computed
        yield connection


def _is_in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:19] == bytes([_WAL_MODE])


def _is_locked(uri: str) -> bool:
    with _connect(uri) as connection:
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            return "locked" in str(error)
    return False


def _journals(path: Path) -> list[Path]:
    """The files in which changes wait that are not yet in the database, or not yet out of it."""
    beside = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-journal"))
    return [journal for journal in beside if journal.is_file() and journal.stat().st_size]


@contextmanager
def _copy(path: Path) -> Iterator[Path]:
    """The database and its journal as they were at one moment: copied again if the database changed meanwhile."""
    with tempfile.TemporaryDirectory(prefix="rldk-") as folder:
        copy = Path(folder, "copy.db")
        for _ in range(_TRIES):
            before = path.stat()
            shutil.copyfile(path, copy)
            for journal in _journals(path):
                shutil.copyfile(journal, copy.with_name(copy.name + journal.name.removeprefix(path.name)))
            after = path.stat()
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                yield copy
                return
        raise ReadError(f"{path} is being written to constantly: try again, or read a copy of it.")
