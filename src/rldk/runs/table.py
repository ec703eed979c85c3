"""Rows into columns: quickly where rows look alike, and in memory bounded by the values they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.runs.column_store import MANY_BLOCKS, MAX_COLUMNS, ColumnStore
from rldk.runs.columns import ABSENT, NULL, NUMBER, TEXT, Chunk, Column, Rows, Shape, Table, no_garbage_collection

__all__ = [
    "ABSENT", "MAX_ROWS", "NULL", "NUMBER", "TEXT", "Column", "Rows", "Table", "TableBuilder", "TableFull",
    "no_garbage_collection",
]  # fmt: skip

_FLUSH_ROWS = 1024
_FLUSH_CELLS = 250_000
_MAX_PATTERNS = 256  # of rows that come as columns; more than that tell nothing
_MAX_OPEN_KEYS = 500_000  # of all shapes together
MAX_ROWS = 1 << 20
_MAX_CELLS = 40_000_000


def _key_set(keys: tuple[str, ...], inner: tuple[str, ...]) -> frozenset[str]:
    return frozenset((*keys, *(f"\0{key}" for key in inner)))


class TableFull(Exception):
    """So much was read that more would fill the memory."""


class TableBuilder:
    """Takes rows one by one, or columns by the block, and makes a `Table` of them.

    Rows with the same keys are collected and turned into arrays together. Nested objects become columns by their path:
    `{"train": {"loss": 1}}` is `train/loss`; those in the object under `lift` go without its name. Words are kept under
    the keys that place a row, and under those in `words`. Past `MAX_COLUMNS` different keys, new ones are counted and
    left out: a log that writes values into its keys must not fill the memory. `TableFull` says that there is no room for more.
    """

    def __init__(
        self,
        lift: str | None = None,
        words: Collection[str] = (),
        max_rows: int = MAX_ROWS,
    ) -> None:
        self.lift = lift
        self.max_rows = max_rows
        self._store = ColumnStore(MAX_COLUMNS, words)
        self._rows = 0
        self._flushed = self._waiting = self._open_keys = 0
        self._open: dict[tuple[tuple[str, ...], tuple[str, ...]], Shape] = {}
        self._shapes: list[npt.NDArray[np.int32]] = []
        self._numbers: dict[frozenset[str], int] = {}
        self._shapes_seen = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one row, which must not change afterwards."""
        row = self._store.narrow(row)
        lifted = row.get(self.lift) if self.lift is not None else None
        inner = self._store.narrow(lifted) if type(lifted) is dict else {}
        shape = self.shape(tuple(row), tuple(inner))
        shape.cells.extend(row.values())
        shape.inner_cells.extend(inner.values())
        shape.rows.append(self._rows)
        self._rows += 1
        self._waiting += len(row) + len(inner)
        if self._rows - self._flushed >= _FLUSH_ROWS or self._waiting > _FLUSH_CELLS:
            self._flush()
            self._check_room()

    def add_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add many rows."""
        with no_garbage_collection():
            for row in rows:
                self.add(row)

    def shape(self, keys: tuple[str, ...], inner: tuple[str, ...] = (), pinned: bool = False) -> Shape:
        """Where rows with these keys, and these in the lifted object, are collected; a pinned one is good for ever."""
        found = self._open.get((keys, inner))
        if found is None:
            found = self._open[keys, inner] = Shape(self._number(keys, inner), keys, inner)
            self._open_keys += len(keys) + len(inner)
        found.pinned |= pinned
        return found

    def _number(self, keys: tuple[str, ...], inner: tuple[str, ...]) -> int:
        """The number of a set of keys, in whatever order they came."""
        number = self._numbers.setdefault(_key_set(keys, inner), self._shapes_seen)
        self._shapes_seen += number == self._shapes_seen
        return number

    def add_block(self, shape: Shape, columns: Iterable[tuple[str, Any]], rows: int) -> None:
        """Add many rows of one shape as columns; in an array every cell counts as logged, `NaN` included.

        Of two columns of one name the cells of the later win, where it has any.
        """
        where = self._next_rows(np.full(rows, shape.number, dtype=np.int32), rows)
        for name, cells in columns:
            if isinstance(cells, np.ndarray):
                self._store.store(name, Chunk(where, cells, NUMBER))
            else:
                self._store.take(name, where, tuple(cells))

    def add_columns(self, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]], rows: int) -> None:
        """Add rows that come as columns; numbers should be arrays, with `NaN` for a cell that is missing.

        Text columns are lists. The cells that are `NaN` count as not logged, since such an array cannot say more; a
        masked array can, and there only the masked cells do.
        """
        gaps: dict[str, npt.NDArray[np.bool_]] = {}
        arrays: dict[str, npt.NDArray[np.float64]] = {}
        for name, cells in columns.items():
            if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
                arrays[name] = values = np.ma.getdata(cells).astype(np.float64)
                gap = np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else np.isnan(values)
                if gap.any():
                    gaps[name] = gap
        where = self._next_rows(self._shapes_of(tuple(columns), gaps, rows), rows)
        for name, cells in columns.items():
            if name not in arrays:
                self._store.take(name, where, tuple(cells))
            elif name not in gaps:
                self._store.store(name, Chunk(where, arrays[name], NUMBER))
            elif (there := ~gaps[name]).any():
                self._store.store(name, Chunk(where[there], arrays[name][there], NUMBER))

    def set_numbers(self, name: str, numbers: Sequence[float]) -> None:
        """Give all rows these numbers under a key, in place of what they had there."""
        self._flush()
        where = np.arange(self._rows, dtype=np.intp)
        self._store.chunks[name] = [Chunk(where, np.array(numbers, dtype=np.float64), NUMBER)]

    def _shapes_of(self, names: tuple[str, ...], gaps: Mapping[str, npt.NDArray[np.bool_]], rows: int) -> npt.NDArray[np.int32]:
        """The number of each row's shape: which of the columns it has a cell in."""
        numbers = np.full(rows, self._number(names, ()), dtype=np.int32)
        if not gaps:
            return numbers
        bits = np.packbits(np.stack(list(gaps.values()), axis=1), axis=1)
        width, text = bits.shape[1], bits.tobytes()
        known: dict[bytes, int] = {}
        for row in range(rows):
            pattern = text[row * width : (row + 1) * width]
            if (number := known.get(pattern)) is None:
                if len(known) == _MAX_PATTERNS:
                    continue
                left_out = {name for name, gap in gaps.items() if gap[row]}
                number = known[pattern] = self._number(tuple(name for name in names if name not in left_out), ())
            numbers[row] = number
        return numbers

    def _next_rows(self, shapes: npt.NDArray[np.int32], rows: int) -> Rows:
        self._flush()
        self._check_room()
        where = np.arange(self._rows, self._rows + rows, dtype=np.intp)
        self._rows += rows
        self._flushed = self._rows
        self._shapes.append(shapes)
        return where

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self._rows

    def _check_room(self) -> None:
        if self._rows > self.max_rows or self._store.cells > _MAX_CELLS:
            raise TableFull

    def finish(self) -> Table:
        """The table of all that was added."""
        self._flush()
        shapes = np.concatenate(self._shapes) if self._shapes else np.zeros(0, dtype=np.int32)
        return Table(self._rows, shapes, self._store.dropped, self._store.chunks)

    def _flush(self) -> None:
        total = self._rows - self._flushed
        if not total:
            return
        numbers = np.zeros(total, dtype=np.int32)
        filled = [shape for shape in self._open.values() if shape.rows]
        for shape in filled:
            numbers[np.array(shape.rows, dtype=np.intp) - self._flushed] = shape.number
        for together in [filled] if len(filled) > MANY_BLOCKS else [[shape] for shape in filled]:
            # the lifted object first, since a key of the row itself wins over one of the same name in it
            self._store.take_blocks([shape.inner_block() for shape in together if shape.inner], 1)
            self._store.take_blocks([shape.block(self.lift) for shape in together], 0)
        for shape in filled:
            shape.clear()
        self._shapes.append(numbers)
        self._flushed, self._waiting = self._rows, 0
        if len(self._open) > MAX_COLUMNS or self._open_keys > _MAX_OPEN_KEYS:
            self._open = {keys: shape for keys, shape in self._open.items() if shape.pinned}
            self._open_keys = sum(len(keys) + len(inner) for keys, inner in self._open)
            self._numbers = {_key_set(*keys): shape.number for keys, shape in self._open.items()}
