"""A file or folder that may hold a run: opened once for a first look, shared by all adapters that consider it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError
from rldk.core.jsonio import loads
from rldk.log.blocks import Progress, check_readable, iter_blocks
from rldk.log.lines import MAX_LINE_BYTES, LineSplitter, iter_lines
from rldk.log.problems import LineProblems

__all__ = ["MAX_DOCUMENT_BYTES", "DocumentTooLarge", "Source", "why_not_readable"]

HEAD_BYTES = 256 << 10
WIDE_HEAD_BYTES = 8 << 20
MOST_SEARCHED_BYTES = 1 << 30
_MAX_KEYS = 4096  # of an object at the beginning: enough to see what it is
MAX_DOCUMENT_BYTES = 128 << 20  # a document takes several times its size in memory
_MAX_UNFOLDED = 700 << 20
_BYTES_OF_OBJECT, _BYTES_OF_VALUE = 150, 40  # what they take in memory, without their text


class DocumentTooLarge(ReadError):
    """A document that would fill the memory; its first rows can still be read."""


def why_not_readable(path: Path) -> str:
    """Why a path is neither a file nor a folder that can be opened, as a sentence that follows its name; empty where it is."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  `Path.stat` is slower, and this is called for each entry of a folder
        if stat.S_ISDIR(mode):
            os.scandir(path).close()
            return ""
    except FileNotFoundError:
        return "is a link to something that does not exist." if os.path.islink(path) else "does not exist."  # noqa: PTH114
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "is a link that leads in a circle."
        return f"cannot be read: {error.strerror}."
    if stat.S_ISFIFO(mode):
        return "is a pipe, and a log is read more than once: write it to a file first."
    if not stat.S_ISREG(mode):
        return "is a device or a socket, and not a file."
    return "" if os.access(path, os.R_OK) else "may not be read by this user: check its permissions (ls -l)."


class Source:
    """A path, with its first bytes (decompressed) and its first lines for those who want to know what it is."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if why := why_not_readable(self.path):
            raise ReadError(f"{self.path} {why}")

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first bytes, and more of them where no line ends in these; empty for a folder.

        Of a file that begins with a line longer than that, those after it: one long line is skipped, not the whole file.
        """
        head = self.first(HEAD_BYTES)
        if len(head) < HEAD_BYTES or b"\n" in head:
            return head
        head = self.first(WIDE_HEAD_BYTES)
        if len(head) < WIDE_HEAD_BYTES or b"\n" in head:
            return head
        return (b"" if b"\0" in head else self._after_first_line(HEAD_BYTES)) or head

    @cached_property
    def wide_head(self) -> bytes:
        """Many more of the first bytes: a console prints much before the first row, and never in a known place."""
        return self.first(WIDE_HEAD_BYTES) if len(self.head) == HEAD_BYTES else self.head

    def first(self, size: int, problems: LineProblems | None = None) -> bytes:
        """So many bytes from the beginning, decompressed; none of a folder."""
        if self.is_folder:
            return b""
        check_readable(self.path)
        head = bytearray()
        for block in iter_blocks(self.path, problems or LineProblems()):
            head += block[: size - len(head)]
            if len(head) >= size:
                break
        return bytes(head)

    def _after_first_line(self, size: int) -> bytes:
        """The first bytes after the first line; none where there is no other, or where that has no end."""
        rest = bytearray()
        begun, searched = False, 0
        for block in iter_blocks(self.path, LineProblems()):
            searched += len(block)
            if not begun and searched > MOST_SEARCHED_BYTES:
                break
            start = 0 if begun else block.find(b"\n") + 1
            if begun or start:
                begun = True
                rest += block[start : start + size - len(rest)]
            if len(rest) >= size:
                break
        return bytes(rest) if rest.strip() else b""

    @cached_property
    def damage(self) -> str:
        """What is wrong with the file as such, where nothing of it can be read."""
        problems = LineProblems()
        for block in iter_blocks(self.path, problems):
            if block:
                return ""
        return problems.damage or ""

    @cached_property
    def is_binary(self) -> bool:
        """Whether it is something else than text: it holds bytes that no log has."""
        sample = self.head[:8192]
        odd = sum(1 for byte in sample if byte < 32 and byte not in b"\t\n\r\x1b\x08\x0c") + sample.count(b"\x7f")
        return bool(sample) and odd > len(sample) // 100 + sample.startswith(b"\0")

    @property
    def is_text(self) -> bool:
        """Whether it is a file of text."""
        return not self.is_folder and not self.is_binary

    @cached_property
    def head_lines(self) -> list[bytes]:
        """The first whole lines (one that the head cuts off is left out, unless it is the only one)."""
        splitter = LineSplitter(MAX_LINE_BYTES, LineProblems())
        lines = [line for _, line in splitter.feed(self.head)]
        if len(self.head) < HEAD_BYTES or not lines:
            lines += [line for _, line in splitter.finish()]
        return lines

    @cached_property
    def head_objects(self) -> list[dict[str, Any]]:
        """The JSON objects among the first 200 lines; of one with thousands of keys, the first ones.

        Where not even the first line fits into the head, those of the first two lines, if both are objects.
        """
        found = _objects_in(self.head_lines[:200])
        if not found and self.head[:1] == b"{" and len(self.head) >= HEAD_BYTES and b"\n" not in self.head:
            long = _objects_in([line for _, line in islice(self.lines(LineProblems()), 2)])
            return long if len(long) == 2 else []
        return found

    def lines(self, problems: LineProblems, progress: Progress | None = None) -> Iterator[tuple[int, bytes]]:
        """All lines with their numbers."""
        return iter_lines(self.path, problems=problems, progress=progress)

    def document(self, problems: LineProblems) -> Any:
        """The whole file as one JSON document."""
        text = bytearray()
        for block in iter_blocks(self.path, problems):
            text += block
            if len(text) > MAX_DOCUMENT_BYTES:
                limit = MAX_DOCUMENT_BYTES >> 20
                raise DocumentTooLarge(f"{self.path} is one JSON document of more than {limit} MiB: write it as JSON lines.")
        if _unfolded(text) > _MAX_UNFOLDED:
            raise DocumentTooLarge(f"{self.path} is one JSON document of too many values: write it as JSON lines.")
        if text.startswith(b"\xef\xbb\xbf"):
            del text[:3]
        try:
            return loads(text)
        except ValueError as error:
            raise ReadError(f"{self.path} is not a complete JSON document ({error}): it may be cut off.") from None


def _objects_in(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    """The lines that are JSON objects, with at most some thousand keys of each."""
    found = []
    for line in lines:
        if line.lstrip()[:1] == b"{":
            try:
                value = loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value if len(value) <= _MAX_KEYS else dict(islice(value.items(), _MAX_KEYS)))
    return found


def _unfolded(text: bytearray) -> int:
    """About how many bytes a JSON text takes in memory as objects, at most."""
    return len(text) + _BYTES_OF_OBJECT * (text.count(b"{") + text.count(b"[")) + _BYTES_OF_VALUE * text.count(b",")
