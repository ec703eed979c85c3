"""Columns and tables: the cells of a log by key, and what kind of cell each is."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.jsonio import to_number
from rldk.core.text import writable

__all__ = [
    "ABSENT", "NULL", "NUMBER", "TEXT", "Block", "Chunk", "Column", "Rows", "Shape", "Table", "mixed", "no_garbage_collection",
]  # fmt: skip

ABSENT, NUMBER, NULL, TEXT = 0, 1, 2, 3
"""What a cell may be: not logged, a number (`NaN` included), logged as `null`, or words."""

Rows = npt.NDArray[np.intp]
Block = tuple[tuple[str, ...], Rows, list[Any], str | None]
"""Rows that have the same keys: the keys, where the rows stand, their cells one row after the other, and a key to leave out."""

_MAX_WORD = 4096


@dataclass(slots=True)
class Column:
    """The cells of one key: their numbers, what kind of cell each is, and for words which of `words` it is."""

    values: npt.NDArray[np.float64]
    state: npt.NDArray[np.uint8]
    codes: npt.NDArray[np.int32] | None = None
    words: tuple[str, ...] = ()

    def take(self, rows: Rows | slice) -> Column:
        """The column of some of the rows."""
        return Column(self.values[rows], self.state[rows], None if self.codes is None else self.codes[rows], self.words)

    def fill(self, other: Column) -> Column:
        """These cells, and the other's where these have no number."""
        take = (self.state != NUMBER) & (other.state != ABSENT)
        return Column(np.where(take, other.values, self.values), np.where(take, other.state, self.state))

    def cells(self) -> list[float | str | None]:
        """What each row says: its words, else its number, else `None`."""
        given = zip(self.texts().tolist(), self.values.tolist(), self.state.tolist(), strict=True)
        return [text if text is not None else value if state == NUMBER else None for text, value, state in given]

    def texts(self) -> npt.NDArray[np.object_]:
        """The words of each row; `None` where it has none."""
        words = np.array([*self.words, None], dtype=object)
        return words[self.codes] if self.codes is not None else np.full(len(self.state), None)

    def only_word(self) -> str | None:
        """The words that stand in every row; `None` where there is a row without them, or with others."""
        codes = self.codes
        if codes is None or not len(codes) or codes[0] < 0 or not (codes == codes[0]).all():
            return None
        return self.words[int(codes[0])]


@dataclass(slots=True)
class Chunk:
    """Some cells of a key: the rows they stand in, their numbers, their states, and the words among them."""

    rows: Rows
    values: npt.NDArray[np.float64] | None
    state: npt.NDArray[np.uint8] | int
    words: Sequence[str | None] | str | None = None

    def repeated(self, rows: Rows) -> Chunk:
        """The only cell of this chunk, in each of these rows."""
        values = None if self.values is None else np.full(len(rows), self.values[0])
        state = self.state if isinstance(self.state, int) else int(self.state[0])
        words = self.words if self.words is None or isinstance(self.words, str) else self.words[0]
        return Chunk(rows, values, state, words)


@dataclass(slots=True)
class Shape:
    """Rows with the same keys that wait to be turned into arrays: their numbers, and their cells one row after the other.

    The cells of the lifted object are kept apart, since they are mostly all numbers.
    """

    number: int
    keys: tuple[str, ...]
    inner: tuple[str, ...]
    rows: list[int] = field(default_factory=list)
    cells: list[Any] = field(default_factory=list)
    inner_cells: list[Any] = field(default_factory=list)
    pinned: bool = False

    def block(self, lift: str | None) -> Block:
        """The rows by their own keys, without the lifted object where it is taken by its keys."""
        return self.keys, np.array(self.rows, dtype=np.intp), self.cells, lift if self.inner else None

    def inner_block(self) -> Block:
        """The rows by the keys of the lifted object."""
        return self.inner, np.array(self.rows, dtype=np.intp), self.inner_cells, None

    def clear(self) -> None:
        """Forget the rows, which are in the table now."""
        self.rows.clear()
        self.cells.clear()
        self.inner_cells.clear()


@dataclass(slots=True)
class Table:
    """All rows of a file in raw terms. `shapes` numbers the set of keys that each row had."""

    rows: int
    shapes: npt.NDArray[np.int32]
    dropped_columns: int
    _chunks: dict[str, list[Chunk]] = field(repr=False)
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)

    def cells_of(self, name: str) -> int:
        """In how many rows a key has a cell."""
        if name in self._columns:
            return int((self._columns[name].state != ABSENT).sum())
        return sum(len(chunk.rows) for chunk in self._chunks.get(name, ()))

    @property
    def names(self) -> tuple[str, ...]:
        """The raw keys, in the order in which they first came."""
        return tuple(self._chunks)

    def column(self, name: str) -> Column:
        """One key's cells over all rows; the numbers are the table's own, unless there are words among them."""
        made = self._columns.get(name)
        if made is None:
            made = self._made(self._chunks.get(name, []))
            if name in self._chunks:
                self._columns[name] = made
                self._chunks[name] = []  # the cells are held once, and not as chunks too
        values = made.values if made.codes is None else made.values.copy()
        return Column(values, made.state.copy(), None if made.codes is None else made.codes.copy(), made.words)

    def _made(self, chunks: list[Chunk]) -> Column:
        if (numbers := _all_numbers(chunks, self.rows)) is not None:
            return Column(numbers, np.full(self.rows, NUMBER, dtype=np.uint8))
        column = Column(np.empty(self.rows), np.zeros(self.rows, dtype=np.uint8))
        codes: dict[str, int] = {}
        for chunk in chunks:
            where = _slice_or(chunk.rows)
            column.state[where] = chunk.state
            if chunk.values is not None:
                column.values[where] = chunk.values
            if chunk.words is not None:
                if column.codes is None:
                    column.codes = np.full(self.rows, -1, dtype=np.int32)
                column.codes[where] = _encode(chunk.words, codes)
            elif column.codes is not None:
                column.codes[where] = -1
        column.values[column.state != NUMBER] = np.nan
        column.words = tuple(map(writable, codes))
        return column


def _all_numbers(chunks: list[Chunk], rows: int) -> npt.NDArray[np.float64] | None:
    """The numbers of a key that has one in every row, if its chunks come in the order of the rows."""
    parts: list[npt.NDArray[np.float64]] = []
    place = 0
    for chunk in chunks:
        follows = int(chunk.rows[0]) == place and int(chunk.rows[-1]) + 1 == place + len(chunk.rows)
        plain = type(chunk.state) is int and chunk.state == NUMBER and chunk.words is None
        if chunk.values is None or not plain or not follows:
            return None
        parts.append(chunk.values)
        place += len(chunk.rows)
    return np.concatenate(parts) if parts and place == rows else None


def _slice_or(rows: Rows) -> Rows | slice:
    """Rows that follow each other as a slice, by which cells are copied much faster."""
    first, last = int(rows[0]), int(rows[-1])
    return slice(first, last + 1) if last - first + 1 == len(rows) else rows


def _encode(words: Sequence[str | None] | str, codes: dict[str, int]) -> npt.NDArray[np.int32] | int:
    if isinstance(words, str):
        return codes.setdefault(words, len(codes))
    return np.array([-1 if word is None else codes.setdefault(word, len(codes)) for word in words], dtype=np.int32)


def mixed(where: Rows, cells: tuple[Any, ...], keep: bool) -> Chunk:
    """Cells of which not all are plain numbers. Words are kept where they place a row, and else only noted as words."""
    if keep and type(cells[0]) is str and cells.count(cells[0]) == len(cells) and to_number(cells[0]) is None:
        return Chunk(where, None, TEXT, cells[0][:_MAX_WORD])
    values = np.full(len(cells), np.nan)
    state = np.full(len(cells), NULL, dtype=np.uint8)
    words: list[str | None] = [None] * len(cells)
    for position, cell in enumerate(cells):
        number = to_number(cell)
        if number is not None:
            values[position] = number
            state[position] = NUMBER
            if keep and type(cell) is str:
                words[position] = cell
        elif cell == []:
            state[position] = ABSENT
        elif cell is not None:
            state[position] = TEXT
            if keep:
                words[position] = "; ".join(map(str, cell))[:_MAX_WORD] if type(cell) is list else str(cell)[:_MAX_WORD]
    if not (state != ABSENT).all():
        there = np.flatnonzero(state != ABSENT)
        where, values, state, words = where[there], values[there], state[there], [words[place] for place in there]
    return Chunk(where, values, state, words if keep and any(word is not None for word in words) else None)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Let the collector of cyclic garbage rest while many rows without cycles are made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
