"""Read the events of a whole log, plain or compressed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.log.blocks import Progress, check_readable
from rldk.log.lines import MAX_LINE_BYTES, iter_lines
from rldk.log.problems import LineProblems

__all__ = ["EventReader", "parse_event"]


class EventReader:
    """The events of one log file, in the order of its lines.

    Lines that are not events are skipped, counted and located in `problems`, which are complete once the reader is exhausted,
    and start again with each pass. A last line without its newline counts if it is a whole event; otherwise `problems.torn` is
    true. The file is read in blocks, so that neither its size nor a line of many megabytes
    costs memory; compressed data is recognised by its first bytes.

    Args:
        path: a file of JSON lines, plain, gzip or zstd.
        max_line_bytes: a longer line is skipped without being held.
        progress: called with the bytes consumed and the size of the file, once per block.

    Raises:
        ReadError: the file is missing, a folder, or may not be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        progress: Progress | None = None,
    ) -> None:
        self.path = Path(path)
        self.max_line_bytes = max_line_bytes
        self.progress = progress
        self.problems = LineProblems()
        self.events = 0
        check_readable(self.path)

    def __iter__(self) -> Iterator[Event]:
        problems = self.problems = LineProblems()
        self.events = 0
        for number, line in iter_lines(self.path, self.max_line_bytes, problems=problems, progress=self.progress):
            event = parse_event(number, line, problems)
            if event is not None:
                self.events += 1
                yield event

    def summary(self) -> str:
        """One sentence about the skipped lines; empty if there are none."""
        said = self.problems.summary()
        if said and not self.events:
            return f"{self.path} has no event and may not be an event log: {said}"
        return f"{self.path}: {said}" if said else ""


def parse_event(number: int, line: bytes, problems: LineProblems) -> Event | None:
    """The event in a line, or `None` and an entry in `problems`."""
    try:
        return Event.from_json(line)
    except ReadError as error:
        problems.add(number, str(error))
        return None
