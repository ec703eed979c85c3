"""JSON lines at several times the speed of a general parser: lines that look like the one before are decoded by its shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import astuple

from rldk.adapters.source import Source
from rldk.log.blocks import Progress, iter_blocks
from rldk.log.lines import MAX_LINE_BYTES, LineSplitter
from rldk.log.problems import LineProblems
from rldk.runs.table import TableBuilder, no_garbage_collection

__all__ = ["FastRows"]

_MAX_SHAPES = 64
_MAX_WIDTH = 512
_SCALARS = {float: float, int: float, str: str}
_NUMBERS = frozenset({float, int})
_OPEN = ord("{")
_ODD_KEY = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')  # what msgspec has no field names for

Parse = Callable[[int, bytes], Mapping[str, Any] | None]
Accepts = Callable[[Mapping[str, Any]], bool]


class FastRows:
    """Takes JSON lines into a table as long as they have a shape that it has learnt from rows parsed before.

    A shape is the set of keys and the kind of value under each. The decoder for it is strict: a key more or less, a
    `null`, a `NaN` token or a number written as text makes it decline, and the lines go the general way. What it takes
    is therefore just what the general way would have made of it. The object that the table lifts is decoded with the
    row; other objects are left for the table to parse, which finds most of them the same in every row. `accepts` judges
    the columns of a block where the general way would refuse a line for its values.
    """

    def __init__(self, builder: TableBuilder, accepts: Accepts | None = None) -> None:
        self._builder = builder
        self._accepts = accepts
        self._shapes: dict[tuple[object, ...], _Decoder] = {}
        self._current: _Decoder | None = None

    def fill(self, source: Source, parse: Parse, problems: LineProblems, progress: Progress | None = None) -> None:
        """Put all lines of a file into the table: whole blocks where their lines look alike, else line by line.

        `parse` makes a row of a line the general way, or counts the line among the problems and gives `None`.
        """
        splitter = LineSplitter(MAX_LINE_BYTES, problems)
        with no_garbage_collection():
            for block in iter_blocks(source.path, problems, progress):
                start = block.find(b"\n") + 1 if splitter.holds else 0
                self._take_lines(splitter.feed(block[:start]), parse)
                end = block.rfind(b"\n") + 1
                if not splitter.holds and start < end and (taken := self._take_block(block, start, end)):
                    splitter.number += taken
                    start = end
                self._take_lines(splitter.feed(block[start:]), parse)
            self._take_lines(splitter.finish(), parse)

    def _take_block(self, block: bytes, start: int, end: int) -> int:
        """How many lines of a part of a block were taken: all, if each has the current shape, or none."""
        decoder = self._current
        if decoder is None:
            return 0
        try:
            rows = decoder.decode_lines(memoryview(block)[start:end])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 0
        if not _one_a_line(block, start, end, len(rows)):
            return 0
        columns = decoder.columns(rows)
        if self._accepts is not None and not self._accepts(columns):
            return 0
        self._builder.add_block(decoder.shape, columns, len(rows))
        return len(rows)

    def _take_lines(self, lines: Iterable[tuple[int, bytes]], parse: Parse) -> None:
        for number, line in lines:
            if (row := parse(number, line)) is not None:
                self._builder.add(row)
                self.learn(row)

    def learn(self, row: Mapping[str, Any]) -> None:
        """Remember the shape of a row that was parsed the general way, for the lines after it."""
        signature = _signature(row, self._builder.lift)
        if signature is None:
            return
        decoder = self._shapes.get(signature)
        if decoder is None:
            if len(self._shapes) >= _MAX_SHAPES:
                return
            decoder = self._shapes[signature] = _Decoder(row, self._builder)
        self._current = decoder


def _one_a_line(block: bytes, start: int, end: int, rows: int) -> bool:
    """Whether each row has a line of its own; two in a line, or one over several, are for the general way to judge."""
    if rows != block.count(b"\n", start, end) or block[start] != _OPEN:
        return False
    return block.count(b"}\n{", start, end) == rows - 1 or block.count(b"}\r\n{", start, end) == rows - 1


def _signature(row: Mapping[str, Any], lifted: str | None) -> tuple[object, ...] | None:
    """Keys and kinds of value; `None` for a row that has a key or a value of which a strict decoder can make nothing."""
    if len(row) > _MAX_WIDTH:
        return None
    parts: list[object] = []
    for key, value in row.items():
        kind = type(value)
        if _ODD_KEY.search(key):
            return None
        if kind is dict and key == lifted:
            inner = _signature(value, None)
            if inner is None or dict in inner or list in inner:
                return None
            parts += [key, inner]
        elif kind in (dict, list):
            parts += [key, kind]
        elif kind in _SCALARS:
            parts += [key, _SCALARS[kind]]
        else:
            return None
    return tuple(parts)


class _Decoder:
    """A decoder for rows of one shape, and the way from its rows to columns."""

    def __init__(self, row: Mapping[str, Any], builder: TableBuilder) -> None:
        lifted = row.get(builder.lift) if builder.lift is not None else None
        inner = lifted if isinstance(lifted, dict) else None
        known = {builder.lift: _struct(inner, {})} if inner is not None and builder.lift is not None else {}
        self.decode_lines: Callable[[memoryview], list[Any]] = msgspec.json.Decoder(_struct(row, known)).decode_lines
        self.shape = builder.shape(tuple(row), tuple(inner or ()), pinned=True)
        self._inner = inner
        self._row = row
        self._lift = builder.lift if inner is not None else None

    def columns(self, rows: list[Any]) -> dict[str, Any]:
        """The rows as columns: arrays for numbers, lists for the rest."""
        made: dict[str, Any] = {}
        if self._lift is None and all(type(value) in _NUMBERS for value in self._row.values()):
            return _matrix(list(self._row), rows)
        for n, (key, value) in enumerate(self._row.items()):
            cells = list(map(attrgetter(f"f{n}"), rows))
            if key == self._lift and self._inner is not None:
                made = {**self._lifted(cells, self._inner), **made}
            else:
                made[key] = np.array(cells, dtype=np.float64) if type(value) in _NUMBERS else cells
        return made

    def _lifted(self, cells: list[Any], inner: Mapping[str, Any]) -> dict[str, Any]:
        if all(type(value) in _NUMBERS for value in inner.values()):
            return _matrix(list(inner), cells)
        columns = zip(*map(astuple, cells), strict=True)
        return {
            name: np.array(column, dtype=np.float64) if type(inner[name]) in _NUMBERS else list(column)
            for name, column in zip(inner, columns, strict=True)
        }


def _matrix(names: list[str], rows: list[Any]) -> dict[str, Any]:
    """Rows of which every cell is a float, as arrays."""
    cells = np.fromiter(chain.from_iterable(map(astuple, rows)), dtype=np.float64, count=len(names) * len(rows))
    return dict(zip(names, np.ascontiguousarray(cells.reshape(len(rows), len(names)).T), strict=True))


def _struct(row: Mapping[str, Any], known: Mapping[str, Any]) -> type[msgspec.Struct]:
    """A strict type for rows like this one: every key is needed, and no other is taken."""
    fields = [(f"f{n}", known.get(key) or _SCALARS.get(type(value), msgspec.Raw)) for n, (key, value) in enumerate(row.items())]
    names = {f"f{n}": key for n, key in enumerate(row)}
    return msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)
