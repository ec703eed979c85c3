"""The rows of an index for the logs of a folder: only of logs that have not changed since they were judged."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from rldk.core.errors import RLDKError
from rldk.dashboard.folder import Folder
from rldk.fleet.index import index_path, read_index
from rldk.fleet.row import COLUMNS, CONFIG, with_settings
from rldk.ingest.discovery import size_and_change

__all__ = ["IndexRows"]

_MAX_BYTES = 1 << 30
_NOT_SHOWN = frozenset({"marks", "incidents", "anomalies"})

Row = dict[str, Any]
Stamp = tuple[int, int]


class IndexRows:
    """The index of a folder, read again when its file has changed.

    Attributes:
        problem: why there is an index that cannot be used; empty without one, too.
        shared: the settings that all runs of the index have in common.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._path = index_path(folder.path)
        self._stamp: Stamp | None = None
        self._rows: dict[tuple[str, int, int], list[list[Row]]] = {}
        self.problem = ""
        self.shared: dict[str, Any] = {}

    def refresh(self) -> bool:
        """Read the index if it is new; whether it was read."""
        try:
            stamp = size_and_change(self._path)
            usable = self._folder.contains(self._path) and stamp[0] < _MAX_BYTES
        except OSError:
            stamp, usable = None, False
        if stamp == self._stamp:
            return False
        self._stamp, self._rows, self.shared, self.problem = stamp, {}, {}, ""
        if stamp is not None and usable:
            try:
                self._take(read_index(self._path).table)
            except RLDKError as error:
                self.problem = str(error)
            except (ValueError, KeyError, TypeError) as error:
                self.problem = f"The index cannot be used ({type(error).__name__}): run `rldk index` again."
        return True

    @property
    def is_there(self) -> bool:
        """Whether an index is in use."""
        return bool(self._rows)

    def _take(self, table: Any) -> None:
        settings = [name for name in table.column_names if name.startswith(CONFIG)]
        differing = [name for name in settings if not _is_constant(table[name])]
        self.shared = {name[len(CONFIG) :]: table[name][0].as_py() for name in settings if name not in differing}
        kept = [name for name in COLUMNS if name in table.column_names and name not in _NOT_SHOWN]
        by_path: dict[str, list[Row]] = {}
        for row in table.select([*kept, *differing]).to_pylist():
            by_path.setdefault(str(row["path"]), []).append(with_settings(row))
        for path, rows in by_path.items():
            place = (PurePath(path).name, int(rows[0]["file_bytes"]), int(rows[0]["file_changed"]))
            self._rows.setdefault(place, []).append(rows)

    def of(self, key: str, stamp: Stamp) -> list[Row] | None:
        """The rows of a log by its path below the folder; `None` if it is not in the index, or not as it is now.

        The paths of an index begin with the folder as it was named when the index was made, so their ends are compared.
        """
        name = self._folder.path.name if key == "." else key
        found = self._rows.get((PurePath(name).name, *stamp), ())
        ends = [rows for rows in found if _ends_with(rows[0]["path"], name)]
        rows = min(ends, key=lambda one: len(one[0]["path"]), default=None)
        return None if rows is None or any(row.get("error") for row in rows) else rows


def _is_constant(column: Any) -> bool:
    import pyarrow.compute as compute

    return compute.count_distinct(column, mode="all").as_py() <= 1  # type: ignore[no-any-return]


def _ends_with(path: str, key: str) -> bool:
    parts, wanted = PurePath(path).parts, PurePath(key).parts
    return parts[-len(wanted) :] == wanted
