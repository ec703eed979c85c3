"""JSON lines at several times the speed of a general parser: lines that look like the one before are decoded by its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from rldk.adapters.formats.row_decoder import RowDecoder, signature_of
from rldk.adapters.source import Source
from rldk.log.blocks import Progress, iter_blocks
from rldk.log.lines import MAX_LINE_BYTES, LineSplitter
from rldk.log.problems import LineProblems
from rldk.runs.table import TableBuilder, no_garbage_collection

__all__ = ["FastRows"]

_MAX_SHAPES = 64
_SMALL_PART = 16 << 10
_OPEN, _CLOSE, _RETURN, _NEWLINE = b"{}\r\n"

Parse = Callable[[int, bytes], Mapping[str, Any] | None]
Accepts = Callable[[Mapping[str, Any]], bool]


class FastRows:
    """Takes JSON lines into a table as long as they have a shape that it has learnt from rows parsed before.

    A shape is the set of keys and the kind of value under each. The decoder for it is strict: a key more or less, a
    `null`, a `NaN` token or a number written as text makes it decline, and the lines go the general way. What it takes
    is therefore just what the general way would have made of it. The object that the table lifts is decoded with the
    row, and so are objects of nothing but numbers once they are seen to differ; others are left for the table to parse,
    which finds most of them the same in every row. `accepts` judges the columns of a block where the general way would
    refuse a line for its values.
    """

    def __init__(self, builder: TableBuilder, accepts: Accepts | None = None) -> None:
        self._builder = builder
        self._accepts = accepts
        self._shapes: dict[tuple[object, ...], RowDecoder] = {}
        self._current: RowDecoder | None = None

    def fill(self, source: Source, parse: Parse, problems: LineProblems, progress: Progress | None = None) -> None:
        """Put all lines of a file into the table: whole blocks where their lines look alike, else line by line.

        `parse` makes a row of a line the general way, or counts the line among the problems and gives `None`.
        """
        splitter = LineSplitter(MAX_LINE_BYTES, problems)
        with no_garbage_collection():
            tail = b""
            for block in iter_blocks(source.path, problems, progress):
                start = block.find(b"\n") + 1 if tail or splitter.holds else 0
                line, tail = tail + block[:start], b""
                if splitter.holds or (line and not start):
                    self._take_lines(splitter.feed(line if start else line + block), parse)
                    line = b""
                if not splitter.holds:
                    end = block.rfind(b"\n") + 1
                    self._take_part(_Part(line, block, start, end), splitter, parse)
                    tail = block[end:]
            self._take_lines(splitter.feed(tail), parse)
            self._take_lines(splitter.finish(), parse)

    def _take_part(self, part: _Part, splitter: LineSplitter, parse: Parse) -> None:
        """Take whole lines: all at once, or else each half by itself, so that few go the general way for an odd one."""
        if self._current is None:
            first, part = part.parted()
            self._take_lines(splitter.feed(first), parse)
        if taken := self._take_block(part):
            splitter.number += taken
        elif halves := part.halves():
            for half in halves:
                self._take_part(half, splitter, parse)
        else:
            self._take_lines(splitter.feed(part.line + part.block[part.start : part.end]), parse)

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

    def _take_lines(self, lines: Iterable[tuple[int, bytes]], parse: Parse) -> None:
        last: Mapping[str, Any] | None = None
        for number, line in lines:
            if (row := parse(number, line)) is not None:
                self._builder.add(row)
                last = row
        if last is not None:
            self._learn(last)

    def _learn(self, row: Mapping[str, Any]) -> None:
        """Remember the shape of a row that was parsed the general way, for the lines after it."""
        signature = signature_of(row, self._builder.lift)
        if signature is None:
            return
        decoder = self._shapes.get(signature)
        if decoder is None:
            if len(self._shapes) >= _MAX_SHAPES:
                return
            decoder = self._shapes[signature] = RowDecoder(row, self._builder)
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
        """Whether each row has a line of its own; two in a line, or one over several, are for the general way to judge."""
        letters = np.frombuffer(self.block, dtype=np.uint8)[self.start : self.end]
        ends = np.flatnonzero(letters == _NEWLINE)
        if len(ends) + bool(self.line) != rows:
            return False
        if not len(ends):
            return True
        last = letters[ends - 1]
        closed = (last == _CLOSE) | ((last == _RETURN) & (letters[ends - 2] == _CLOSE))
        return letters[0] == _OPEN and bool((letters[ends[:-1] + 1] == _OPEN).all()) and bool(closed.all())
