"""The lines of a file: fast, in bounded memory; lines that cannot be used are counted and located."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rldk.log.blocks import Progress, check_readable, iter_blocks
from rldk.log.problems import LineProblems

__all__ = ["MAX_LINE_BYTES", "LineProblems", "LineSplitter", "QuietStretch", "iter_lines"]

MAX_LINE_BYTES = 16 << 20
_BOM = b"\xef\xbb\xbf"
_BLANK = b"\0 \t\r\v\f"
_EMPTY = b"\n \t\r\v\f"
_QUIET_BYTES = 256 << 20
_QUIET_CONSOLE_BYTES, _QUIET_CONSOLE_LINES = 64 << 20, 250_000


def iter_lines(
    path: str | os.PathLike[str],
    max_line_bytes: int = MAX_LINE_BYTES,
    *,
    problems: LineProblems | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Give the lines of a plain, gzip or zstd file with their numbers (from 1), without their newlines.

    A byte order mark, the `\\r` of CRLF, NUL bytes at either end and blank lines are removed. A line that is too
    long or holds nothing but NUL bytes goes to `problems`, where the caller adds those it cannot use; the number of a
    last line without newline is in `problems.unterminated` by the time it is given. `progress` is called once per block.

    Raises `ReadError` at once where the file cannot be opened.
    """
    place = Path(path)
    check_readable(place)
    return _lines(place, LineSplitter(max_line_bytes, LineProblems() if problems is None else problems), progress)


def _lines(path: Path, splitter: LineSplitter, progress: Progress | None) -> Iterator[tuple[int, bytes]]:
    problems = splitter.problems
    quiet = QuietStretch(problems, _QUIET_CONSOLE_BYTES, _QUIET_CONSOLE_LINES)
    for block in iter_blocks(path, problems, progress):
        if problems.last_row is not None and quiet.is_too_long(problems.last_row, splitter.number, block):
            return
        yield from splitter.feed(block)
    yield from splitter.finish()


class QuietStretch:
    """What of a file has passed since its last row. After very much without a row the rest is not read, and `problems` say so.

    Gigabytes of newlines would take minutes. Of JSON lines, 256 MiB may pass: among them may be a line of a hundred, such as a
    dump of samples, which costs no more than reading it. In a console each line is searched for numbers, which takes far longer:
    there it is 64 MiB, or 250,000 lines.
    """

    def __init__(self, problems: LineProblems, max_bytes: int | None = None, max_lines: int | None = None) -> None:
        self.problems = problems
        self._max_bytes = _QUIET_BYTES if max_bytes is None else max_bytes
        self._max_lines = max_lines
        self._rows: int | None = None
        self._line = self._bytes = 0

    def is_too_long(self, rows: int, line: int, block: bytes) -> bool:
        """Whether to stop before this block. `rows` changes with each row that is found, `line` is the last line so far."""
        if rows != self._rows:
            self._rows, self._line, self._bytes = rows, line, 0
            return False
        self._bytes += len(block)
        if self._bytes <= self._max_bytes and (self._max_lines is None or line - self._line <= self._max_lines):
            return False
        self.problems.damage = f"no row came for very long before line {line}: what follows it was not read"
        return True


class LineSplitter:
    """Splits blocks into lines, and holds the half line at the end of a block until the rest arrives.

    It never holds more than `max_line_bytes` and one block. `number` is that of the last whole line seen.
    """

    def __init__(self, max_line_bytes: int, problems: LineProblems) -> None:
        self.max_line_bytes = max_line_bytes
        self.problems = problems
        self.number = 0
        self._held = bytearray()
        self._too_long = False

    @property
    def holds(self) -> bool:
        """Whether the last block ended within a line."""
        return bool(self._held) or self._too_long

    def feed(self, block: bytes) -> list[tuple[int, bytes]]:
        """The lines that end in this block."""
        if not self.holds and not block.strip(_EMPTY):
            self.number += block.count(b"\n")
            block = block[block.rfind(b"\n") + 1 :]
        first, *lines = block.split(b"\n")
        self._hold(first)
        if not lines:
            return []
        last = lines.pop()
        found = self._end_line()
        numbered = enumerate(lines, self.number + 1)
        if b"\r" in block or b"\0" in block or len(block) > self.max_line_bytes:
            found += [(number, clean) for number, line in numbered if (clean := self._clean(number, line))]
        else:
            found += [pair for pair in numbered if pair[1] and not pair[1].isspace()]
        self.number += len(lines)
        self._hold(last)
        return found

    def finish(self) -> list[tuple[int, bytes]]:
        """The last line, where it has no newline."""
        if not self.holds:
            return []
        self.problems.unterminated = self.number + 1
        return self._end_line()

    def _hold(self, piece: bytes) -> None:
        if not self._too_long:
            self._held += piece
            if len(self._held) > self.max_line_bytes:
                self._too_long = True
                self._held = bytearray()

    def _end_line(self) -> list[tuple[int, bytes]]:
        self.number += 1
        line, too_long = bytes(self._held), self._too_long
        self._held, self._too_long = bytearray(), False
        if too_long:
            self._report_too_long(self.number)
            return []
        clean = self._clean(self.number, line.removeprefix(_BOM) if self.number == 1 else line)
        return [(self.number, clean)] if clean else []

    def _clean(self, number: int, line: bytes) -> bytes:
        """The cleaned line; empty if there is nothing to use."""
        if len(line) > self.max_line_bytes:
            self._report_too_long(number)
            return b""
        if line.strip(_BLANK):
            return line.removesuffix(b"\r").strip(b"\0")
        if b"\0" in line:
            self.problems.add(number, "nothing but NUL bytes, as a crash of the machine leaves them")
        return b""

    def _report_too_long(self, number: int) -> None:
        self.problems.add(number, f"longer than {self.max_line_bytes} bytes")
