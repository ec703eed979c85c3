"""JSON lines decoded by the block, several times as fast as line by line.

Lines that look like the one before are decoded together by a strict decoder made for their shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from struct import Struct
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import astuple

from rldk.ingest.source import Source
from rldk.log.blocks import Progress, iter_blocks
from rldk.log.lines import MAX_LINE_BYTES, LineSplitter, QuietStretch
from rldk.log.problems import LineProblems
from rldk.runs.table import TableBuilder, no_garbage_collection

__all__ = ["FastRows"]

_MAX_WIDTH = 512
_SCALARS = {float: float, int: float, str: str}
_TYPES = {**_SCALARS, list: list}
_NUMBERS = frozenset({float, int})
_ODD_KEY = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')  # what msgspec has no field names for


def _signature_of(row: Mapping[str, Any], lifted: str | None) -> tuple[object, ...] | None:
    """Keys and kinds of value; `None` for a row that has a key or a value of which a strict decoder can make nothing."""
    if len(row) > _MAX_WIDTH:
        return None
    parts: list[object] = []
    for key, value in row.items():
        kind = type(value)
        if _ODD_KEY.search(key):
            return None
        if kind is dict and key == lifted:
            inner = _signature_of(value, None)
            if inner is None or any(type(cell) in (dict, list) for cell in value.values()):
                return None
            parts += [key, inner]
        elif _is_numeric(value):
            parts += [key, tuple(value)]
        elif kind in (dict, list):
            parts += [key, kind]
        elif kind in _SCALARS:
            parts += [key, _SCALARS[kind]]
        else:
            return None
    return tuple(parts)


def _is_numeric(value: Any) -> bool:
    """Whether it is an object of nothing but numbers, under keys that a strict decoder can name."""
    return (
        type(value) is dict
        and 0 < len(value) <= _MAX_WIDTH
        and all(type(inner) in _NUMBERS and not _ODD_KEY.search(key) for key, inner in value.items())
    )


class _RowDecoder:
    """A decoder for rows of one shape, and the way from its rows to columns."""

    def __init__(self, row: Mapping[str, Any], builder: TableBuilder) -> None:
        lifted = row.get(builder.lift) if builder.lift is not None else None
        inner = lifted if isinstance(lifted, dict) else None
        self.shape = builder.shape(tuple(row), tuple(inner or ()), pinned=True)
        self._inner = inner
        self._row = row
        self._lift = builder.lift if inner is not None else None
        self._differing: set[str] = set()
        self._make()

    def _make(self) -> None:
        known = {key: _struct(self._row[key], {}) for key in self._differing}
        if self._lift is not None and self._inner is not None:
            known[self._lift] = _struct(self._inner, {})
        decoder = msgspec.json.Decoder(_struct(self._row, known))
        self.decode_lines: Callable[[bytes | memoryview], list[Any]] = decoder.decode_lines

    def columns(self, rows: list[Any]) -> list[tuple[str, Any]]:
        """The rows as columns: arrays for numbers, lists for the rest; those of the lifted object first, as in the table."""
        if self._lift is None and all(type(value) in _NUMBERS for value in self._row.values()):
            return _matrix(list(self._row), rows)
        lifted: list[tuple[str, Any]] = []
        made: list[tuple[str, Any]] = []
        for (key, value), cells in zip(self._row.items(), zip(*map(astuple, rows), strict=True), strict=True):
            if key == self._lift and self._inner is not None:
                lifted = self._lifted(cells, self._inner)
            elif key in self._differing:
                made += _matrix([f"{key}/{name}" for name in value], cells)
            else:
                made.append((key, np.array(cells, dtype=np.float64) if type(value) in _NUMBERS else cells))
        self._learn_differing(made)
        return lifted + made

    def _learn_differing(self, made: list[tuple[str, Any]]) -> None:
        """Have objects of nothing but numbers that differ from row to row decoded from now on, and not left unparsed."""
        found = {key for key, cells in made if _is_numeric(self._row.get(key)) and cells[0] != cells[-1]}
        if found:
            self._differing |= found
            self._make()

    def _lifted(self, cells: Sequence[Any], inner: Mapping[str, Any]) -> list[tuple[str, Any]]:
        if all(type(value) in _NUMBERS for value in inner.values()):
            return _matrix(list(inner), cells)
        columns = zip(*map(astuple, cells), strict=True)
        return [
            (name, np.array(column, dtype=np.float64) if type(inner[name]) in _NUMBERS else column)
            for name, column in zip(inner, columns, strict=True)
        ]


def _matrix(names: list[str], rows: Sequence[Any]) -> list[tuple[str, Any]]:
    """Rows of which every cell is a float, as arrays."""
    packed = b"".join(starmap(Struct(f"{len(names)}d").pack, map(astuple, rows)))  # twice as fast as an array of the cells
    cells = np.frombuffer(packed, dtype=np.float64).reshape(len(rows), len(names))
    return list(zip(names, np.ascontiguousarray(cells.T), strict=True))


def _struct(row: Mapping[str, Any], known: Mapping[str, Any]) -> type[msgspec.Struct]:
    """A strict type for rows like this one: every key is needed, and no other is taken."""
    fields = [(f"f{n}", known.get(key) or _TYPES.get(type(value), msgspec.Raw)) for n, (key, value) in enumerate(row.items())]
    names = {f"f{n}": key for n, key in enumerate(row)}
    return msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)


_MAX_SHAPES = 64
_SMALL_PART = 16 << 10
_OPEN, _CLOSE, _RETURN, _NEWLINE = b"{}\r\n"

Parse = Callable[[int, bytes, LineProblems], Mapping[str, Any] | None]
Accepts = Callable[[Mapping[str, Any]], bool]


class FastRows:
    """Takes JSON lines into a table as long as they have a shape that it has learnt from rows parsed before.

    A shape is the set of keys and the kind of value under each. The decoder for it is strict: a key more or less, a
    `null`, a `NaN` token or a number written as text makes it decline, and the lines go the general way. What it takes
    is therefore just what the general way would have made of it. The object that the table lifts is decoded with the
    row, and so are objects of nothing but numbers once they are seen to differ; others are left for the table to parse,
    which finds most of them the same in every row.

    Args:
        parse: makes a row of a line the general way, or adds the line to the problems and gives `None`.
        accepts: judges the columns of a block where the general way would refuse a line for its values.
    """

    def __init__(self, builder: TableBuilder, problems: LineProblems, parse: Parse, accepts: Accepts | None = None) -> None:
        self._builder = builder
        self._problems = problems
        self._parse = parse
        self._accepts = accepts
        self._shapes: dict[tuple[object, ...], _RowDecoder] = {}
        self._current: _RowDecoder | None = None

    def fill(self, source: Source, progress: Progress | None = None) -> None:
        """Put all lines of a file into the table: whole blocks where their lines look alike, else line by line.

        Where no row comes for very long, as in gigabytes of newlines, the rest is not read.
        """
        splitter = LineSplitter(MAX_LINE_BYTES, self._problems)
        with no_garbage_collection():
            tail = b""
            quiet = QuietStretch(self._problems)
            for block in iter_blocks(source.path, self._problems, progress):
                if quiet.is_too_long(self._builder.rows, splitter.number, block):
                    return
                start = block.find(b"\n") + 1 if tail or splitter.holds else 0
                line, tail = tail + block[:start], b""
                if splitter.holds or (line and not start):
                    self._take_lines(splitter.feed(line if start else line + block))
                    line = b""
                if not splitter.holds:
                    end = block.rfind(b"\n") + 1
                    self._take_part(_Part(line, block, start, end), splitter)
                    tail = block[end:]
            self._take_lines(splitter.feed(tail))
            self._take_lines(splitter.finish())

    def _take_part(self, part: _Part, splitter: LineSplitter) -> None:
        """Take whole lines: all at once, or else each half by itself, so that few go the general way for an odd one."""
        if self._current is None:
            first, part = part.parted()
            self._take_lines(splitter.feed(first))
        if taken := self._take_block(part):
            splitter.number += taken
        elif halves := part.halves():
            for half in halves:
                self._take_part(half, splitter)
        else:
            self._take_lines(splitter.feed(part.line + part.block[part.start : part.end]))

    def _take_block(self, part: _Part) -> int:
        """How many lines of a part were taken: all, if each has the current shape, or none."""
        decoder = self._current
        if decoder is None:
            return 0
        try:
            rows = decoder.decode_lines(part.line) if part.line else []
            if len(rows) != bool(part.line):
                return 0
            rows += decoder.decode_lines(memoryview(part.block)[part.start : part.end])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 0
        if not rows or not part.has_a_line_for_each(len(rows)):
            return 0
        columns = decoder.columns(rows)
        if self._accepts is not None and not self._accepts(dict(columns)):
            return 0
        self._builder.add_block(decoder.shape, columns, len(rows))
        return len(rows)

    def _take_lines(self, lines: Iterable[tuple[int, bytes]]) -> None:
        last: Mapping[str, Any] | None = None
        for number, line in lines:
            if (row := self._parse(number, line, self._problems)) is not None:
                self._builder.add(row)
                last = row
        if last is not None:
            self._learn(last)

    def _learn(self, row: Mapping[str, Any]) -> None:
        """Remember the shape of a row that was parsed the general way, for the lines after it."""
        signature = _signature_of(row, self._builder.lift)
        if signature is None:
            return
        decoder = self._shapes.get(signature)
        if decoder is None:
            if len(self._shapes) >= _MAX_SHAPES:
                return
            decoder = self._shapes[signature] = _RowDecoder(row, self._builder)
        self._current = decoder


@dataclass(frozen=True, slots=True)
class _Part:
    """Whole lines: one that began in the block before, and those from `start` to `end` of a block."""

    line: bytes
    block: bytes
    start: int
    end: int

    def parted(self) -> tuple[bytes, _Part]:
        """The first line, and the rest."""
        if self.line:
            return self.line, _Part(b"", self.block, self.start, self.end)
        first = self.block.find(b"\n", self.start, self.end) + 1 or self.end
        return self.block[self.start : first], _Part(b"", self.block, first, self.end)

    def halves(self) -> tuple[_Part, _Part] | None:
        """Both halves, parted at the end of a line; `None` where it is too small for that, or a single line."""
        middle = self.block.find(b"\n", (self.start + self.end) // 2, self.end - 1) + 1
        if self.end - self.start < _SMALL_PART or not middle:
            return None
        return _Part(self.line, self.block, self.start, middle), _Part(b"", self.block, middle, self.end)

    def has_a_line_for_each(self, rows: int) -> bool:
        """Whether each row has a line of its own; two in a line, or one over several, are left to the general way."""
        letters = np.frombuffer(self.block, dtype=np.uint8)[self.start : self.end]
        ends = np.flatnonzero(letters == _NEWLINE)
        if len(ends) + bool(self.line) != rows:
            return False
        if not len(ends):
            return True
        last = letters[ends - 1]
        closed = (last == _CLOSE) | ((last == _RETURN) & (letters[ends - 2] == _CLOSE))
        return letters[0] == _OPEN and bool((letters[ends[:-1] + 1] == _OPEN).all()) and bool(closed.all())
