"""Rows into columns: quickly where rows look alike, and in memory bounded by the values they hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Raw

from rldk.core.catalog.axes import is_axis
from rldk.core.jsonio import dumps, loads
from rldk.core.run_config import CONFIG_KEY
from rldk.core.text import writable
from rldk.runs.columns import ABSENT, NULL, NUMBER, TEXT, Chunk, Column, Rows, Shape, Table, mixed, no_garbage_collection
from rldk.runs.list_statistics import statistics_of

__all__ = [
    "ABSENT", "NULL", "NUMBER", "TEXT", "Column", "Rows", "Shape", "Table", "TableBuilder", "TableFull", "no_garbage_collection",
]  # fmt: skip

_PLAIN = frozenset({float, int, bool})
_FLUSH_ROWS = 1024
_MAX_PATTERNS = 256  # of rows that come as columns; more than that tell nothing
_MAX_COLUMNS = 4096
_MAX_DEPTH = 8
_MAX_DROPPED = 100_000
_MAX_LEAVES = 256
_FLUSH_CELLS = 250_000
_MAX_WIDTH = 2 * _MAX_COLUMNS  # keys of a row, or of an object in it
_MAX_OPEN_KEYS = 500_000  # of all shapes together
_MANY_SHAPES = 32
_MAX_ROWS = 1 << 20
_MAX_CELLS = 40_000_000


def _key_set(keys: tuple[str, ...], inner: tuple[str, ...]) -> frozenset[str]:
    return frozenset((*keys, *(f"\0{key}" for key in inner)))


class TableFull(Exception):
    """So much was read that more would fill the memory."""


class TableBuilder:
    """Takes rows one by one, or columns by the block, and makes a `Table` of them.

    Rows with the same keys are collected and turned into arrays together. Nested objects become columns by their path:
    `{"train": {"loss": 1}}` is `train/loss`; those in the object under `lift` go without its name. Words are kept under
    the keys that place a row, and under those in `words`. Past `max_columns` different keys, new ones are counted and
    left out: a log that writes values into its keys must not fill the memory. `TableFull` says that there is no room for more.
    """

    def __init__(self, max_columns: int = _MAX_COLUMNS, lift: str | None = None, words: Collection[str] = ()) -> None:
        self.lift = lift
        self._words = frozenset(words)
        self._max_columns = max_columns
        self._rows = 0
        self._flushed = self._waiting = self._cells = self._open_keys = 0
        self._open: dict[tuple[tuple[str, ...], tuple[str, ...]], Shape] = {}
        self._chunks: dict[str, list[Chunk]] = {}
        self._shapes: list[npt.NDArray[np.int32]] = []
        self._numbers: dict[frozenset[str], int] = {}
        self._shapes_seen = 0
        self._dropped: set[int] = set()
        self._leaves: dict[tuple[str, bytes], list[tuple[str, float | None, int, str | None]]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one row, which must not change afterwards."""
        if len(row) > _MAX_WIDTH:
            row = self._narrowed(row)
        inner = row.get(self.lift) if self.lift is not None else None
        if type(inner) is dict and len(inner) > _MAX_WIDTH:
            inner = self._narrowed(inner)
        shape = self.shape(tuple(row), tuple(inner)) if type(inner) is dict else self.shape(tuple(row))
        shape.cells.extend(row.values())
        if type(inner) is dict:
            shape.inner_cells.extend(inner.values())
        shape.rows.append(self._rows)
        self._rows += 1
        self._waiting += len(row) + (len(inner) if type(inner) is dict else 0)
        if self._rows - self._flushed >= _FLUSH_ROWS or self._waiting > _FLUSH_CELLS:
            self._flush()
            self._check_room()

    def _narrowed(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The first keys of a row that has more than there are columns, and those that place it; the others are counted."""
        kept = dict(islice(row.items(), _MAX_WIDTH))
        for key in islice(row, _MAX_WIDTH, None):
            if self._keeps_words(key):
                kept[key] = row[key]
            elif len(self._dropped) < _MAX_DROPPED:
                self._dropped.add(hash(key))
        return kept

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
                self._store(name, Chunk(where, cells, NUMBER))
            else:
                self._take(name, where, tuple(cells), 0)

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
                self._take(name, where, tuple(cells), 0)
            elif name not in gaps:
                self._store(name, Chunk(where, arrays[name], NUMBER))
            elif (there := ~gaps[name]).any():
                self._store(name, Chunk(where[there], arrays[name][there], NUMBER))

    def set_numbers(self, name: str, numbers: Sequence[float]) -> None:
        """Give all rows these numbers under a key, in place of what they had there."""
        self._flush()
        where = np.arange(self._rows, dtype=np.intp)
        self._chunks[name] = [Chunk(where, np.array(numbers, dtype=np.float64), NUMBER)]

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
        if self._rows > _MAX_ROWS or self._cells > _MAX_CELLS:
            raise TableFull

    def finish(self) -> Table:
        """The table of all that was added."""
        self._flush()
        shapes = np.concatenate(self._shapes) if self._shapes else np.zeros(0, dtype=np.int32)
        return Table(self._rows, shapes, len(self._dropped), self._chunks)

    def _flush(self) -> None:
        total = self._rows - self._flushed
        if not total:
            return
        numbers = np.zeros(total, dtype=np.int32)
        filled = [shape for shape in self._open.values() if shape.rows]
        for shape in filled:
            numbers[np.array(shape.rows, dtype=np.intp) - self._flushed] = shape.number
        if len(filled) > _MANY_SHAPES:
            self._take_scattered([(shape.inner, shape.rows, shape.inner_cells, None) for shape in filled if shape.inner], 1)
            self._take_scattered(
                [(shape.keys, shape.rows, shape.cells, self.lift if shape.inner else None) for shape in filled], 0
            )
        for shape in filled:
            if len(filled) <= _MANY_SHAPES:
                where = np.array(shape.rows, dtype=np.intp)
                if shape.inner:  # first, since a key of the row itself wins over one of the same name in the lifted object
                    self._take_block(shape.inner, where, shape.inner_cells, 1)
                self._take_block(shape.keys, where, shape.cells, 0, skip=self.lift if shape.inner else None)
            shape.clear()
        self._shapes.append(numbers)
        self._flushed, self._waiting = self._rows, 0
        if len(self._open) > _MAX_COLUMNS or self._open_keys > _MAX_OPEN_KEYS:
            self._open = {keys: shape for keys, shape in self._open.items() if shape.pinned}
            self._open_keys = sum(len(keys) + len(inner) for keys, inner in self._open)
            self._numbers = {_key_set(*keys): shape.number for keys, shape in self._open.items()}

    def _take_scattered(
        self, blocks: Sequence[tuple[tuple[str, ...], list[int], list[Any], str | None]], depth: int, prefix: str = ""
    ) -> None:
        """Few rows each of many shapes: the cells of a key together, since a block for each row takes much more memory."""
        found: dict[str, list[tuple[int, Any]]] = {}
        for keys, rows, cells, skip in blocks:
            for position, name in enumerate(keys):
                if name != skip:
                    found.setdefault(name, []).extend(zip(rows, cells[position :: len(keys)], strict=True))
        for name, pairs in found.items():
            pairs.sort(key=itemgetter(0))
            where, values = zip(*pairs, strict=True)
            self._take(prefix + name, np.array(where, dtype=np.intp), values, depth)

    def _take_block(
        self, keys: tuple[str, ...], where: Rows, cells: list[Any], depth: int, prefix: str = "", skip: str | None = None
    ) -> None:
        """Cells of rows that have the same keys, one row after the other; at C speed where all are plain numbers."""
        width = len(keys)
        if _PLAIN.issuperset(map(type, cells)):
            try:
                values = np.array(cells, dtype=np.float64).reshape(len(where), width)
            except OverflowError:  # a whole number beyond the range of floats
                pass
            else:
                for name, column in zip(keys, np.ascontiguousarray(values.T), strict=True):
                    self._store(prefix + name, Chunk(where, column, NUMBER))
                return
        for position, name in enumerate(keys):
            if name != skip:
                self._take(prefix + name, where, tuple(cells[position::width]), depth)

    def _take(self, name: str, where: Rows, cells: tuple[Any, ...], depth: int) -> None:
        """Turn the cells of one key into numbers, or, where they are nested objects, into columns of their own."""
        kinds = set(map(type, cells))
        if name == CONFIG_KEY:  # the settings of a run, in one of its rows: no columns of their own
            for position, cell in enumerate(cells):
                if type(cell) is dict and (position == 0 or cell != cells[position - 1]):
                    self._store(name, Chunk(where[position : position + 1], None, TEXT, dumps(cell).decode()))
        elif kinds <= _PLAIN:
            try:
                self._store(name, Chunk(where, np.array(cells, dtype=np.float64), NUMBER))
            except OverflowError:
                self._store(name, self._mixed(name, where, cells))
        elif Raw in kinds:
            self._take_raw(
                name, where, cells if kinds == {Raw} else tuple(c if type(c) is Raw else Raw(dumps(c)) for c in cells), depth
            )
        elif dict in kinds:
            self._unfold(name, where, cells, depth)
            self._take_others(name, where, cells, dict)
        elif list in kinds and not self._keeps_words(name):
            for column, positions, values in statistics_of(name, cells):
                self._store(column, Chunk(where[positions], values, NUMBER))
            if len(kinds) > 1:
                self._take_others(name, where, cells, list)
        elif kinds == {list} and not all(cells):  # empty lists say nothing
            filled = list(compress(range(len(cells)), cells))
            if filled:
                self._take(name, where[np.array(filled, dtype=np.intp)], tuple(cells[position] for position in filled), 0)
        else:
            self._store(name, self._mixed(name, where, cells))

    def _take_others(self, name: str, where: Rows, cells: tuple[Any, ...], kind: type) -> None:
        """The cells that are not of a kind, of which the rest is dealt with."""
        others = [position for position, cell in enumerate(cells) if type(cell) is not kind]
        if others:
            self._take(name, where[np.array(others, dtype=np.intp)], tuple(cells[position] for position in others), 0)

    def _keeps_words(self, name: str) -> bool:
        return is_axis(name) or name in self._words

    def _take_raw(self, name: str, where: Rows, cells: tuple[Any, ...], depth: int) -> None:
        """JSON that a reader left unparsed: mostly the same text in every row, which is then parsed and placed once."""
        if cells.count(cells[0]) == len(cells):
            self._take_same(name, where, bytes(cells[0]), depth)
            return
        texts = list(map(bytes, cells))
        different = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        if len(different) > len(cells) // 8 + 2:
            self._take(name, where, tuple(map(loads, texts)), depth)
            return
        numbers = np.fromiter(map(different.__getitem__, texts), dtype=np.intp, count=len(texts))
        for text, number in different.items():
            self._take_same(name, where[numbers == number], text, depth)

    def _take_same(self, name: str, where: Rows, text: bytes, depth: int) -> None:
        """One cell that stands in many rows, and mostly in those of the block before as well."""
        leaves = self._leaves.get((name, text))
        if leaves is None:
            if len(self._leaves) == _MAX_LEAVES:
                self._leaves.clear()
            leaves = self._leaves[name, text] = list(self._leaves_of(name, loads(text), depth))
        for leaf, number, state, words in leaves:
            self._store(leaf, Chunk(where, None if number is None else np.full(len(where), number), state, words))

    def _leaves_of(self, name: str, cell: Any, depth: int) -> Iterator[tuple[str, float | None, int, str | None]]:
        """The cells in a value by their path: number, state and words of each."""
        if name == CONFIG_KEY:
            if type(cell) is dict:
                yield name, None, TEXT, dumps(cell).decode()
        elif type(cell) is dict:
            for key, value in cell.items():
                if depth < _MAX_DEPTH:
                    yield from self._leaves_of(f"{name}/{key}", value, depth + 1)
        elif type(cell) is list and not self._keeps_words(name):
            for column, _, values in statistics_of(name, (cell,)):
                yield column, float(values[0]), NUMBER, None
        elif cell != []:
            one = self._mixed(name, np.zeros(1, dtype=np.intp), (cell,))
            words = one.words if one.words is None or isinstance(one.words, str) else one.words[0]
            state = int(one.state[0]) if not isinstance(one.state, int) else one.state
            yield name, None if one.values is None else float(one.values[0]), state, words

    def _unfold(self, name: str, where: Rows, cells: tuple[Any, ...], depth: int) -> None:
        """Nested objects: each of their keys is a column."""
        if depth == _MAX_DEPTH:
            return
        blocks: dict[tuple[str, ...], tuple[list[int], list[Any]]] = {}
        for position, cell in enumerate(cells):
            if type(cell) is dict:
                cell = cell if len(cell) <= _MAX_WIDTH else self._narrowed(cell)
                positions, values = blocks.setdefault(tuple(cell), ([], []))
                positions.append(position)
                values.extend(cell.values())
        if len(blocks) > _MANY_SHAPES:
            rows = where.tolist()
            scattered = [(keys, [rows[at] for at in positions], values, None) for keys, (positions, values) in blocks.items()]
            self._take_scattered(scattered, depth + 1, f"{name}/")
            return
        for keys, (positions, values) in blocks.items():
            inner = where if len(positions) == len(cells) else where[np.array(positions, dtype=np.intp)]
            self._take_block(keys, inner, values, depth + 1, f"{name}/")

    def _store(self, name: str, chunk: Chunk) -> None:
        if not len(chunk.rows):
            return
        self._cells += len(chunk.rows)
        chunks = self._chunks.get(name) or self._chunks.get(name := writable(name))
        if chunks is not None:
            chunks.append(chunk)
        elif len(self._chunks) < self._max_columns or self._keeps_words(name):
            self._chunks[name] = [chunk]
        elif len(self._dropped) < _MAX_DROPPED:
            self._dropped.add(hash(name))

    def _mixed(self, name: str, where: Rows, cells: tuple[Any, ...]) -> Chunk:
        return mixed(where, cells, self._keeps_words(name))
