"""The columns of a growing table: the cells of a key become numbers, words, or columns of their own where they are nested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import compress, islice
from operator import itemgetter
from typing import Any

import numpy as np
from msgspec import Raw

from rldk.core.catalog.axes import is_axis
from rldk.core.jsonio import dumps, loads
from rldk.core.run_config import CONFIG_KEY
from rldk.core.text import writable
from rldk.runs.columns import NUMBER, TEXT, Block, Chunk, Rows, mixed
from rldk.runs.list_statistics import statistics_of

__all__ = ["MANY_BLOCKS", "MAX_COLUMNS", "ColumnStore"]

MAX_COLUMNS = 4096
_MAX_WIDTH = 2 * MAX_COLUMNS  # keys of a row, or of an object in it
_MAX_DEPTH = 8
_MAX_DROPPED = 100_000
_MAX_LEAVES = 256
MANY_BLOCKS = 32
_PLAIN = frozenset({float, int, bool})


class ColumnStore:
    """Takes cells by their key, and keeps them as chunks of columns.

    Nested objects become columns by their path, and lists become statistics. Words are kept under the keys that place a
    row, and under those in `words`. Past `max_columns` different keys, new ones are counted and left out.
    """

    def __init__(self, max_columns: int, words: Collection[str]) -> None:
        self.chunks: dict[str, list[Chunk]] = {}
        self.cells = 0
        self._max_columns = max_columns
        self._words = frozenset(words)
        self._dropped: set[int] = set()
        self._leaves: dict[tuple[str, bytes], list[tuple[str, Chunk]]] = {}

    @property
    def dropped(self) -> int:
        """How many keys were left out."""
        return len(self._dropped)

    def narrow(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row, or of one with more keys than there are columns the first, and those that place it; the others are counted."""
        if len(row) <= _MAX_WIDTH:
            return row
        kept = dict(islice(row.items(), _MAX_WIDTH))
        for key in islice(row, _MAX_WIDTH, None):
            if self._keeps_words(key):
                kept[key] = row[key]
            else:
                self._drop(key)
        return kept

    def store(self, name: str, chunk: Chunk) -> None:
        """Add cells that are ready to a column."""
        if not len(chunk.rows):
            return
        self.cells += len(chunk.rows)
        chunks = self.chunks.get(name) or self.chunks.get(name := writable(name))
        if chunks is not None:
            chunks.append(chunk)
        elif len(self.chunks) < self._max_columns or self._keeps_words(name):
            self.chunks[name] = [chunk]
        else:
            self._drop(name)

    def take_blocks(self, blocks: Sequence[Block], depth: int, prefix: str = "") -> None:
        """Add blocks of rows; of many the cells of a key together, since a chunk for each takes much more memory."""
        if len(blocks) <= MANY_BLOCKS:
            for block in blocks:
                self._take_block(block, depth, prefix)
            return
        found: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
        for keys, where, cells, skip in blocks:
            every = iter(cells)
            for row in where.tolist():
                for name, cell in zip(keys, every, strict=False):  # the keys of this row, and no further
                    if name != skip:
                        found[name].append((row, cell))
        for name, pairs in found.items():
            pairs.sort(key=itemgetter(0))
            at, values = zip(*pairs, strict=True)
            self.take(prefix + name, np.array(at, dtype=np.intp), values, depth)

    def _take_block(self, block: Block, depth: int, prefix: str) -> None:
        """Add one block, at C speed where all cells are plain numbers."""
        keys, where, cells, skip = block
        if _PLAIN.issuperset(map(type, cells)):
            try:
                values = np.array(cells, dtype=np.float64).reshape(len(where), len(keys))
            except OverflowError:  # a whole number beyond the range of floats
                pass
            else:
                for name, column in zip(keys, np.ascontiguousarray(values.T), strict=True):
                    self.store(prefix + name, Chunk(where, column, NUMBER))
                return
        for position, name in enumerate(keys):
            if name != skip:
                self.take(prefix + name, where, tuple(cells[position :: len(keys)]), depth)

    def take(self, name: str, where: Rows, cells: tuple[Any, ...], depth: int = 0) -> None:
        """Add the cells of one key, of whatever kind they are."""
        kinds = set(map(type, cells))
        if name == CONFIG_KEY:  # the settings of a run, in one of its rows: no columns of their own
            for position, cell in enumerate(cells):
                if type(cell) is dict and (position == 0 or cell != cells[position - 1]):
                    self.store(name, Chunk(where[position : position + 1], None, TEXT, dumps(cell).decode()))
        elif kinds <= _PLAIN:
            try:
                self.store(name, Chunk(where, np.array(cells, dtype=np.float64), NUMBER))
            except OverflowError:
                self._take_mixed(name, where, cells)
        elif Raw in kinds:
            raw = cells if kinds == {Raw} else tuple(cell if type(cell) is Raw else Raw(dumps(cell)) for cell in cells)
            self._take_raw(name, where, raw, depth)
        elif dict in kinds:
            self._unfold(name, where, cells, depth)
            self._take_some(name, where, cells, [type(cell) is not dict for cell in cells])
        elif list in kinds and not self._keeps_words(name):
            for column, positions, values in statistics_of(name, cells):
                self.store(column, Chunk(where[positions], values, NUMBER))
            self._take_some(name, where, cells, [type(cell) is not list for cell in cells])
        elif kinds == {list} and not all(cells):  # empty lists say nothing
            self._take_some(name, where, cells, list(map(bool, cells)))
        else:
            self._take_mixed(name, where, cells)

    def _take_mixed(self, name: str, where: Rows, cells: tuple[Any, ...]) -> None:
        self.store(name, mixed(where, cells, self._keeps_words(name)))

    def _take_some(self, name: str, where: Rows, cells: tuple[Any, ...], chosen: list[bool]) -> None:
        """Add only the chosen cells; the others are dealt with, or say nothing."""
        if any(chosen):
            self.take(name, where[np.array(chosen)], tuple(compress(cells, chosen)))

    def _take_raw(self, name: str, where: Rows, cells: tuple[Raw, ...], depth: int) -> None:
        """JSON that a reader left unparsed: mostly the same text in every row, which is then parsed and placed once."""
        if cells.count(cells[0]) == len(cells):
            self._take_same(name, where, bytes(cells[0]), depth)
            return
        texts = list(map(bytes, cells))
        different = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        if len(different) > len(texts) // 8 + 2:
            self.take(name, where, tuple(map(loads, texts)), depth)
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
            leaves = self._leaves[name, text] = self._leaves_of(name, loads(text), depth)
        for leaf, chunk in leaves:
            self.store(leaf, chunk.repeated(where))

    def _leaves_of(self, name: str, cell: Any, depth: int) -> list[tuple[str, Chunk]]:
        """The cells in a value by their path, as they stand in one row."""
        alone = ColumnStore(self._max_columns, self._words)
        alone.take(name, np.zeros(1, dtype=np.intp), (cell,), depth)
        self._dropped |= alone._dropped
        return [(leaf, chunk) for leaf, chunks in alone.chunks.items() for chunk in chunks]

    def _unfold(self, name: str, where: Rows, cells: tuple[Any, ...], depth: int) -> None:
        """Nested objects: each of their keys is a column."""
        if depth == _MAX_DEPTH:
            return
        found: dict[tuple[str, ...], tuple[list[int], list[Any]]] = {}
        for position, cell in enumerate(cells):
            if type(cell) is dict:
                cell = self.narrow(cell)
                positions, values = found.setdefault(tuple(cell), ([], []))
                positions.append(position)
                values.extend(cell.values())
        blocks: list[Block] = [
            (keys, where if len(positions) == len(cells) else where[np.array(positions, dtype=np.intp)], values, None)
            for keys, (positions, values) in found.items()
        ]
        self.take_blocks(blocks, depth + 1, f"{name}/")

    def _keeps_words(self, name: str) -> bool:
        return is_axis(name) or name in self._words

    def _drop(self, name: str) -> None:
        if len(self._dropped) < _MAX_DROPPED:
            self._dropped.add(hash(name))
