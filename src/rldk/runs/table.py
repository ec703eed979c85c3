"""Rows into columns: quickly where rows look alike, and in memory bounded by the values they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.catalog.axes import is_axis
from rldk.core.jsonio import to_number

__all__ = ["ABSENT", "NULL", "NUMBER", "TEXT", "Column", "Table", "TableBuilder"]

ABSENT, NUMBER, NULL, TEXT = 0, 1, 2, 3
"""What a cell may be: not logged, a number (`NaN` included), logged as `null`, or words."""

_PLAIN = frozenset({float, int, bool})
_KEPT_TEXT = frozenset({"notes", "git_sha"})
_FLUSH_ROWS = 8192
_MAX_COLUMNS = 4096


@dataclass(slots=True)
class Column:
    """The cells of one key: their numbers, what kind of cell each is, and the words of those that are words."""

    values: npt.NDArray[np.float64]
    state: npt.NDArray[np.uint8]
    texts: dict[int, str] = field(default_factory=dict)

    def take(self, rows: npt.NDArray[np.intp]) -> Column:
        """The column of some of the rows."""
        if not self.texts:
            return Column(self.values[rows], self.state[rows])
        texts = {new: self.texts[old] for new, old in enumerate(rows.tolist()) if old in self.texts}
        return Column(self.values[rows], self.state[rows], texts)


@dataclass(slots=True)
class _Chunk:
    rows: npt.NDArray[np.intp]
    values: npt.NDArray[np.float64]
    state: npt.NDArray[np.uint8] | None
    texts: dict[int, str]


@dataclass(slots=True)
class Table:
    """All rows of a file in raw terms. `shapes` numbers the set of keys that each row had."""

    rows: int
    shapes: npt.NDArray[np.int32]
    dropped_columns: int
    _chunks: dict[str, list[_Chunk]]

    @property
    def names(self) -> tuple[str, ...]:
        """The raw keys, in the order in which they first came."""
        return tuple(self._chunks)

    def column(self, name: str) -> Column:
        """One key's cells over all rows."""
        column = Column(np.full(self.rows, np.nan), np.zeros(self.rows, dtype=np.uint8))
        for chunk in self._chunks.get(name, ()):
            column.values[chunk.rows] = chunk.values
            column.state[chunk.rows] = NUMBER if chunk.state is None else chunk.state
            column.texts.update(chunk.texts)
        return column


class TableBuilder:
    """Takes rows one by one, or columns by the block, and makes a `Table` of them.

    Rows with the same keys are collected and turned into arrays together. Past `max_columns` different keys, new ones
    are counted and left out: a log that writes values into its keys must not fill the memory.
    """

    def __init__(self, max_columns: int = _MAX_COLUMNS) -> None:
        self._max_columns = max_columns
        self._rows = 0
        self._open: dict[tuple[str, ...], tuple[list[int], list[tuple[Any, ...]]]] = {}
        self._chunks: dict[str, list[_Chunk]] = {}
        self._shape_ids: dict[tuple[str, ...], int] = {}
        self._shapes: list[npt.NDArray[np.int32]] = []
        self._dropped: set[int] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one flat row."""
        shape = tuple(row)
        block = self._open.get(shape)
        if block is None:
            block = self._open[shape] = ([], [])
        block[0].append(self._rows)
        block[1].append(tuple(row.values()))
        self._rows += 1
        if self._rows % _FLUSH_ROWS == 0:
            self._flush()

    def add_columns(self, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], rows: int) -> None:
        """Add a block of rows that comes as columns; numbers should be float arrays, with `NaN` for a missing cell.

        Text columns are lists. The cells that are `NaN` count as not logged, since a table of columns cannot say more.
        """
        self._flush()
        where = np.arange(self._rows, self._rows + rows, dtype=np.intp)
        self._rows += rows
        self._shapes.append(np.full(rows, self._shape_id(tuple(columns)), dtype=np.int32))
        for name, cells in columns.items():
            if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
                values = cells.astype(np.float64)
                there = ~np.isnan(values)
                if there.any():
                    self._store(name, _Chunk(where[there], values[there], None, {}))
            else:
                self._store(name, _chunk(name, where, list(cells)))

    def finish(self) -> Table:
        """The table of all that was added."""
        self._flush()
        shapes = np.concatenate(self._shapes) if self._shapes else np.zeros(0, dtype=np.int32)
        return Table(self._rows, shapes, len(self._dropped), self._chunks)

    def _shape_id(self, shape: tuple[str, ...]) -> int:
        return self._shape_ids.setdefault(shape, len(self._shape_ids) % (2**31))

    def _flush(self) -> None:
        total = sum(len(block[0]) for block in self._open.values())
        if not total:
            return
        first = self._rows - total
        shapes = np.zeros(total, dtype=np.int32)
        for shape, (numbers, rows) in self._open.items():
            where = np.array(numbers, dtype=np.intp)
            shapes[where - first] = self._shape_id(shape)
            for name, cells in zip(shape, zip(*rows, strict=True), strict=True):
                self._store(name, _chunk(name, where, cells))
        self._shapes.append(shapes)
        self._open.clear()
        if len(self._shape_ids) > _MAX_COLUMNS:
            self._shape_ids.clear()

    def _store(self, name: str, chunk: _Chunk) -> None:
        chunks = self._chunks.get(name)
        if chunks is not None:
            chunks.append(chunk)
        elif len(self._chunks) < self._max_columns or is_axis(name):
            self._chunks[name] = [chunk]
        else:
            self._dropped.add(hash(name))


def _chunk(name: str, where: npt.NDArray[np.intp], cells: Iterable[Any]) -> _Chunk:
    """Cells into numbers; at C speed where all are plain numbers."""
    cells = tuple(cells)
    if _PLAIN.issuperset(map(type, cells)):
        try:
            return _Chunk(where, np.array(cells, dtype=np.float64), None, {})
        except OverflowError:
            pass  # a whole number beyond the range of floats: taken one by one below
    values = np.full(len(cells), np.nan)
    state = np.full(len(cells), NULL, dtype=np.uint8)
    texts: dict[int, str] = {}
    keep = name in _KEPT_TEXT or is_axis(name)
    for position, cell in enumerate(cells):
        if cell is None:
            continue
        number = to_number(cell)
        if number is not None:
            values[position] = number
            state[position] = NUMBER
            if keep and type(cell) is str:
                texts[int(where[position])] = cell
        else:
            state[position] = TEXT
            if keep:
                texts[int(where[position])] = cell if type(cell) is str else str(cell)
    return _Chunk(where, values, state, texts)
