"""A file that somebody else is writing: what it gains, and whether it is still the same file."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

from rldk.core.errors import ReadError
from rldk.log.blocks import BLOCK_BYTES, compression_of

__all__ = ["GrowingFile"]

_MARK_BYTES = 256


class GrowingFile:
    """The whole lines that an open file gains.

    Before new bytes are taken, those just before them are compared with what was there: a file that was shortened and
    has grown again since, beyond where it was, is recognised by its content. A half line at the end is left in the file
    until its newline comes, so that a writer may take it back (and does, when it repairs what a crash left).
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
        """New whole lines, empty where there are none; `None` where what was read before is no longer there.

        A line longer than a block comes in pieces.
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

    def skip_lines(self) -> int:
        """Go to the end of the last whole line; returns how many lines that were."""
        lines = 0
        while data := self.read():
            lines += data.count(b"\n")
        return lines

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
        """Let go of the file."""
        self._file.close()

    def _look(self) -> bytes | None:
        mark = self._mark
        try:
            self._file.seek(self.offset - len(mark))
            data = self._file.read(len(mark) + BLOCK_BYTES)
        except OSError as error:
            if error.errno == errno.ESTALE:
                return b""  # deleted on its server: there is nothing more to have
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
