"""The file that keeps what a command prints, for rldk to read."""

from __future__ import annotations

import threading
from pathlib import Path

from rldk.core.errors import UsageError

__all__ = ["OutputLog"]

_LONGEST_HELD = 1 << 20


class OutputLog:
    """Everything that a command prints, in the order in which it arrives.

    Standard output is written in whole lines, since a program cuts it anywhere when it empties its buffer; errors as they
    come, since a progress bar is a line without an end. A log that cannot be written (a full disk) ends the reading, never
    the command.

    Attributes:
        problem: why the log could not be written to its end; empty where it could.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._held = b""
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise UsageError(f"The log {path} cannot be written ({error.strerror}). Choose another with --log.") from error

    def add(self, stream: str, data: bytes) -> None:
        """Take what came from `stdout`, `stderr` or a `terminal`."""
        with self._lock:
            if stream == "terminal":
                data = data.replace(b"\r\n", b"\n")
            elif stream == "stdout":
                data = self._whole_lines(data)
            self._write(data)

    def close(self) -> None:
        """Write the last half line, and close the file."""
        with self._lock:
            self._write(self._held)
            self._held = b""
            self._file.close()

    def _whole_lines(self, data: bytes) -> bytes:
        data = self._held + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - end > _LONGEST_HELD:
            end = len(data)
        self._held = data[end:]
        return data[:end]

    def _write(self, data: bytes) -> None:
        if not data or self.problem or self._file.closed:
            return
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self.problem = f"{self.path} can no longer be written: {error.strerror}"
