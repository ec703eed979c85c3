"""A file that some page looks at, and an event log among them, which is followed as it grows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rldk.core.errors import RLDKError
from rldk.core.event import Event
from rldk.dashboard.quick import Canonical, QuickTail, sketch
from rldk.dashboard.watched import Watched
from rldk.log.tail import LogTail

__all__ = ["JUDGED_AT_ONCE", "LOOK", "FollowedLog", "Opened"]

LOOK = 0.2
_LARGE = 256 << 20
_MOST_RUNS = 200
JUDGED_AT_ONCE = 100


class Opened(ABC):
    """What the reader does with a file: a little work at a time, so that it can answer in between."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: dict[str, Watched] = {}
        self.problem = ""
        self.skipped = ""
        self.started_over = 0
        self.progress = 0.0
        self.asked = time.monotonic()
        self._next_look = 0.0

    @abstractmethod
    def work(self) -> bool:
        """Do a little; whether there is more to do at once."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def first(self) -> Watched | None:
        """The run that is shown where none was asked for: the one that was written to last."""
        return next(reversed(self.runs.values()), None)


class FollowedLog(Opened):
    """An event log. One tail reads for the picture, a slower one for the judge; neither reads a line twice."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tail: QuickTail | None = None
        self._judged: LogTail | None = None
        self._canonical = Canonical()
        self._waiting: Iterator[Event] = iter(())
        self._dtype = np.float64

    def work(self) -> bool:
        now = time.monotonic()
        if now < self._next_look:
            return False
        try:
            if self._tail is None:
                self._begin()
            busy = self._show() or self._judge()
            self.problem = ""
        except RLDKError as error:
            self.problem, busy = str(error), False
        if not busy:
            self._next_look = now + LOOK
        return busy

    def _begin(self) -> None:
        self.close()
        self.runs.clear()
        self._dtype = np.float32 if self.path.stat().st_size > _LARGE else np.float64
        self._tail, self._judged = QuickTail(self.path), LogTail(self.path)
        self._waiting = iter(())
        by_run: dict[str, list[Event]] = {}
        for event in sketch(self.path):
            by_run.setdefault(self._name(event), []).append(event)
        for name, events in by_run.items():
            self._run(name).draft(events)

    def _name(self, event: Event) -> str:
        return event.run_id or self.path.name.removesuffix(".jsonl").removesuffix("_events")

    def _run(self, name: str) -> Watched:
        """The run of that name, moved to the end: the one that was written to last."""
        found = self.runs.pop(name, None)
        if found is None:
            found = Watched(name, self._dtype)
        self.runs[name] = found
        if len(self.runs) > _MOST_RUNS:
            del self.runs[next(iter(self.runs))]
        return found

    def _show(self) -> bool:
        tail = self._tail
        assert tail is not None
        events = tail.read_new()
        if tail.generation:
            return self._start_over()
        start = 0
        while start < len(events):
            name = self._name(events[start])
            stop = start + 1
            while stop < len(events) and self._name(events[stop]) == name:
                stop += 1
            self._run(name).take(events[start:stop])
            start = stop
        self.skipped = tail.problems.summary() if tail.problems.total else ""
        if tail.caught_up:
            self.progress = 1.0
            for run in self.runs.values():
                run.read_through()
        else:
            self.progress = min(1.0, tail.position / max(1, self.path.stat().st_size))
        return not tail.caught_up

    def _judge(self) -> bool:
        tail = self._judged
        assert tail is not None
        for number, event in enumerate(self._waiting, 1):
            made = self._canonical(event)
            run = self.runs.get(self._name(made))
            if run is not None:
                run.judge(made)
            if number == JUDGED_AT_ONCE:
                return True
        events = tail.read_new()
        if tail.generation:
            return self._start_over()
        self._waiting = iter(events)
        return bool(events) or not tail.caught_up

    def _start_over(self) -> bool:
        """The file was replaced or cut: what is in it now is another run, or the same one from an earlier step."""
        self.started_over += 1
        self._begin()
        return True

    def close(self) -> None:
        for tail in (self._tail, self._judged):
            if tail is not None:
                tail.close()
