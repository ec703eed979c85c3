"""The new events of a log that is being written, whatever happens to its file meanwhile."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.log.blocks import BLOCK_BYTES, compression_of
from rldk.log.lines import MAX_LINE_BYTES, LineSplitter
from rldk.log.problems import LineProblems
from rldk.log.reader import parse_event

__all__ = ["GrowingFile", "LogTail"]

_MARK_BYTES = 256


class GrowingFile:
    """The whole lines that a file gains while another process writes it.

    Before new bytes are read, the bytes just before them are compared with what was there: a file that was shortened
    and has grown again, past its old size, is recognised by its content. A half line at the end is left in the file
    until its newline arrives, because a writer may remove it (and does, when it repairs what a crash left).
    """

    def __init__(self, path: Path, file: io.FileIO) -> None:
        self.path = path
        self.offset = 0
        self._file = file
        self._mark = b""

    @classmethod
    def open(cls, path: Path) -> GrowingFile | None:
        """Open what is at `path` now; `None` where nothing is, `ReadError` where it cannot be followed."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise ReadError(f"{path} is not a regular file, and only those can be followed.")
            return cls(path, io.FileIO(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ReadError(f"{path} cannot be followed: {getattr(error, 'strerror', None) or error}.") from error

    def read(self) -> bytes | None:
        """New whole lines, empty if there are none; `None` if what was read before is no longer there.

        A line longer than a block is returned in pieces.
        """
        data = self._look()
        if data is None:
            return None
        end = data.rfind(b"\n") + 1
        if not end and len(data) >= BLOCK_BYTES:
            end = len(data)
        return self._take(data[:end])

    def rest(self) -> bytes:
        """All new bytes, the half line at the end included: for a file that will not grow any more."""
        return self._take(self._look() or b"")

    def rewind(self) -> None:
        """Begin again at the first byte."""
        self.offset, self._mark = 0, b""

    def was_replaced(self) -> bool:
        """Whether the path names another file by now; a path that names nothing leaves this one valid."""
        try:
            now = self.path.stat()
        except OSError:
            return False
        try:
            return not os.path.samestat(now, os.fstat(self._file.fileno()))
        except OSError:
            return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _look(self) -> bytes | None:
        mark = self._mark
        try:
            self._file.seek(self.offset - len(mark))
            data = self._file.read(len(mark) + BLOCK_BYTES)
        except OSError as error:
            if error.errno == errno.ESTALE:
                return b""  # deleted on the file server: nothing more will come
            raise ReadError(f"{self.path} can no longer be read: {error.strerror}.") from error
        if not data.startswith(mark):
            return None
        if not self.offset and compression_of(data[:4]):
            raise ReadError(f"{self.path} is compressed and cannot be followed. Read it as a whole instead.")
        return data[len(mark) :]

    def _take(self, data: bytes) -> bytes:
        self.offset += len(data)
        self._mark = (self._mark + data[-_MARK_BYTES:])[-_MARK_BYTES:]
        return data


class LogTail:
    """Returns the events that a log has gained since the last call, and never waits.

    The file need not exist yet. When it is replaced (rotated, deleted and created again, rewritten by a resumed run) the
    old one is read to its end first; when it is shortened it is read again from the start. Either way `generation`
    increases by one, and the events returned from then on are those of the new content: a caller that keeps events
    compares `generation` with the one it saw last, and starts over when it differs. A half line is held back until its
    newline arrives; a line longer than `max_line_bytes` is skipped in bounded memory.

    Attributes:
        generation: how often the file was started over.
        caught_up: whether the last call found nothing new.

    Raises:
        ReadError: there is something at the path that cannot be followed, such as a folder or compressed data.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = Path(path)
        self.generation = 0
        self.caught_up = False
        self._splitter = LineSplitter(max_line_bytes, LineProblems())
        self._file = GrowingFile.open(self.path)
        self._had_file = self._file is not None

    @property
    def problems(self) -> LineProblems:
        """The lines of the present file that are not events."""
        return self._splitter.problems

    @property
    def position(self) -> int:
        """How many bytes of the present file have been read."""
        return self._file.offset if self._file is not None else 0

    def read_new(self) -> list[Event]:
        """The next events, of at most about 1 MiB of the log; call it until `caught_up` to get all of them.

        All events of one call belong to the `generation` that stands when it returns.
        """
        file = self._file or self._open_next()
        if file is None:
            self.caught_up = True
            return []
        lines = file.read()
        if lines is None:
            file.rewind()
            self._start_over()
            lines = file.read()
        if not lines and file.was_replaced():
            lines = file.read()  # it may have grown since the first read
            if not lines:
                return self._finish(file)
        self.caught_up = not lines
        return self._parsed(self._splitter.feed(lines or b""))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def _open_next(self) -> GrowingFile | None:
        self._file = GrowingFile.open(self.path)
        if self._file is not None:
            if self._had_file:
                self._start_over()
            self._had_file = True
        return self._file

    def _start_over(self) -> None:
        self.generation += 1
        self._splitter = LineSplitter(self._splitter.max_line_bytes, LineProblems())

    def _finish(self, file: GrowingFile) -> list[Event]:
        """The last line of a file that was replaced, if it is whole; the next call opens the new file."""
        events = self._parsed(self._splitter.feed(file.rest()))
        events += self._parsed(self._splitter.finish())
        file.close()
        self._file = None
        self.caught_up = False
        return events

    def _parsed(self, lines: Iterable[tuple[int, bytes]]) -> list[Event]:
        events = (parse_event(number, line, self.problems) for number, line in lines)
        return [event for event in events if event is not None]
