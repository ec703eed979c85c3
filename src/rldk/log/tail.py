"""The new events of a log that is being written, whatever happens to its file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rldk.core.event import Event
from rldk.log.growing import GrowingFile
from rldk.log.lines import MAX_LINE_BYTES, LineSplitter
from rldk.log.problems import LineProblems
from rldk.log.reader import parse_event

__all__ = ["LogTail"]


class LogTail:
    """Gives the events that a log has gained since the last look, without ever waiting.

    The file need not exist yet. When it is replaced (rotated, deleted and made again, rewritten by a resumed run) the
    old one is read to its end first; when it is shortened it is read again from the start. Either way `generation` goes
    up by one, and the events given from then on are those of the new content: a consumer that keeps events compares
    `generation` with the one it saw last, and starts over when it differs. A half line is held back until its newline
    comes; one longer than `max_line_bytes` is skipped in bounded memory.

    Attributes:
        generation: how often the file was started over.
        started_over_by: `truncated` or `replaced`, for the last time that it was; empty before.
        caught_up: whether the last look found nothing new.

    Raises:
        ReadError: there is something at the path that cannot be followed, such as a folder or compressed data.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, from_start: bool = True, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self.path = Path(path)
        self.generation = 0
        self.started_over_by = ""
        self.caught_up = False
        self._splitter = LineSplitter(max_line_bytes, LineProblems())
        self._skipped_before = 0
        self._file = GrowingFile.open(self.path)
        self._had_file = self._file is not None
        if self._file is not None and not from_start:
            self._splitter.number = self._file.skip_lines()

    @property
    def problems(self) -> LineProblems:
        """The lines of the present file that are no events."""
        return self._splitter.problems

    @property
    def skipped_total(self) -> int:
        """How many lines were no events, over all generations."""
        return self._skipped_before + self.problems.total

    def read_new(self) -> list[Event]:
        """The next events, of at most about 1 MiB of the log; call it until `caught_up` for all there are.

        All events of one call belong to the `generation` that stands when it returns.
        """
        file = self._file or self._open_next()
        if file is None:
            self.caught_up = True
            return []
        lines = file.read()
        if lines is None:
            file.rewind()
            self._start_over("truncated")
            lines = file.read()
        if not lines and file.was_replaced():
            lines = file.read()  # it may have grown between the two looks
            if not lines:
                return self._finish(file)
        self.caught_up = not lines
        return self._parsed(self._splitter.feed(lines or b""))

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def _open_next(self) -> GrowingFile | None:
        self._file = GrowingFile.open(self.path)
        if self._file is not None:
            if self._had_file:
                self._start_over("replaced")
            self._had_file = True
        return self._file

    def _start_over(self, cause: str) -> None:
        self.generation += 1
        self.started_over_by = cause
        self._skipped_before = self.skipped_total
        self._splitter = LineSplitter(self._splitter.max_line_bytes, LineProblems())

    def _finish(self, file: GrowingFile) -> list[Event]:
        """The last line of a file that was replaced, where it is whole; the next look opens the new file."""
        events = self._parsed(self._splitter.feed(file.rest()))
        events += self._parsed(self._splitter.finish())
        file.close()
        self._file = None
        self.caught_up = False
        return events

    def _parsed(self, lines: Iterable[tuple[int, bytes]]) -> list[Event]:
        events = (parse_event(number, line, self.problems) for number, line in lines)
        return [event for event in events if event is not None]
