"""The event log: a writer that loses nothing, a reader of whole files, and a follower of growing ones."""

from __future__ import annotations

from rldk.log.follow import Follower, follow_events
from rldk.log.lines import LineProblems, iter_lines
from rldk.log.reader import EventReader
from rldk.log.writer import EventWriter

__all__ = ["EventReader", "EventWriter", "Follower", "LineProblems", "follow_events", "iter_lines"]
