"""The event log: a writer that loses nothing, a reader of whole files, and a tail of growing ones."""

from __future__ import annotations

from rldk.log.lines import LineProblems, iter_lines
from rldk.log.reader import EventReader
from rldk.log.tail import LogTail
from rldk.log.writer import EventWriter

__all__ = ["EventReader", "EventWriter", "LineProblems", "LogTail", "iter_lines"]
