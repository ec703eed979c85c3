"""A log that a page shows: drawn and judged as it grows, a little work at a time."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np

from rldk.core.errors import RLDKError
from rldk.core.event import Event
from rldk.core.jsonio import MAX_STEP
from rldk.core.text import escaped
from rldk.dashboard.shown_run import ShownRun
from rldk.ingest.follow import RereadLog, run_name
from rldk.judge.follow import LogFollower
from rldk.log.problems import LineProblems
from rldk.log.reader import parse_event
from rldk.log.tail import LogTail
from rldk.runs.canonical import Canonicaliser, prefix_held_out

__all__ = ["PAUSE", "OpenLog", "sketch"]

logger = logging.getLogger("rldk")

PAUSE = 0.2
"""Seconds until a log that has not grown is checked again."""

_PAUSE_AFTER_FAILURE = 5.0
_JUDGED_AT_ONCE = 100  # about 10 ms, after which a page is answered
_LARGE = 256 << 20
_SKETCHED_FROM = 16 << 20
_SKETCH_PLACES = 400
_SKETCH_BYTES = 64 << 10


class OpenLog:
    """The runs of a log. An event log is read twice: quickly for the curves, then for the judge, which is slower.

    Attributes:
        asked: when a page last asked for it.
        latest: the run that was written to last.
        progress: how much of it has been read for the curves, from 0 to 1.
        restarts: how often the event log was replaced or shortened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = time.monotonic()
        self.restarts = 0
        self._next_read = 0.0
        self._failure, self._may_pass = "", False
        self._begin()

    def _begin(self) -> None:
        self.latest: ShownRun | None = None
        self.progress = 0.0
        dtype = np.float32 if _size(self.path) > _LARGE else np.float64
        self._follower = LogFollower(self.path, lambda name, framework: ShownRun(name, framework, dtype))
        self._tail: CurveTail | None = None

    @property
    def runs(self) -> dict[str, ShownRun]:
        """The runs by name."""
        return self._follower.runs

    @property
    def problem(self) -> str:
        """Why it, or part of it, cannot be read; empty while it can."""
        return self._follower.problem or self._failure

    @property
    def skipped(self) -> str:
        """How many lines could not be read, and why."""
        if self._tail is not None:
            return self._tail.problems.summary() if self._tail.problems.total else ""
        return self._follower.log.skipped if self._follower.log is not None else ""

    def work(self) -> bool:
        """Do a little; whether there is more to do at once."""
        now = time.monotonic()
        if now < self._next_read:
            return False
        try:
            busy = self._work(now)
        except Exception as error:  # noqa: BLE001  one log that cannot be shown must not take the others with it
            self._fail(error)
            return False
        if self._may_pass:
            self._failure = ""
        return busy

    def _fail(self, error: Exception) -> None:
        """Say what went wrong, once, and try again later. What could not be shown stays said, unless it was the disk."""
        failure = f"Part of it cannot be shown: {type(error).__name__}: {error}."
        if failure != self._failure:
            logger.error("The dashboard could not show all of %s", escaped(str(self.path)), exc_info=error)
        self._failure, self._may_pass, self.progress = failure, isinstance(error, OSError), 1.0
        self._next_read = time.monotonic() + _PAUSE_AFTER_FAILURE

    def _work(self, now: float) -> bool:
        busy = False
        if self._follower.open():
            busy = self._reread() if isinstance(self._follower.log, RereadLog) else self._draw_new() or self._judge_new()
        else:
            self.progress = 1.0
        if not busy:
            self._next_read = now + PAUSE
        return busy

    def _reread(self) -> bool:
        self._follower.read(_JUDGED_AT_ONCE)
        log = self._follower.log
        assert isinstance(log, RereadLog)
        if not log.is_reading or self.runs:
            self.progress = 1.0
        self.latest = self._follower.latest
        return self._follower.busy

    def _draw_new(self) -> bool:
        if self._tail is None:
            self._tail = CurveTail(self.path)
            for name, found in groupby(sorted(sketch(self.path), key=self._name), key=self._name):
                if (run := self._follower.run(name)) is not None:
                    run.draw_sketch(list(found))
        events = self._tail.read_new()
        if self._tail.generation:
            return self._restart()
        for name, group in groupby(events, key=self._name):
            if (run := self._follower.run(name)) is not None:
                run.draw(list(group))
                self.latest = run
        self.progress = min(1.0, self._tail.position / max(1, _size(self.path)))
        if self._tail.caught_up:
            self.progress = 1.0
            for run in self.runs.values():
                run.sketch = None
        return not self._tail.caught_up

    def _name(self, event: Event) -> str:
        return run_name(event, self.path)

    def _judge_new(self) -> bool:
        self._follower.read(_JUDGED_AT_ONCE)
        return self._restart() if self._follower.restarts else self._follower.busy

    def _restart(self) -> bool:
        """The file was replaced or shortened: it holds another run now, or the same one from an earlier step."""
        self.restarts += 1
        self.close()
        self._begin()
        return True

    def close(self) -> None:
        """Close the file."""
        self._follower.close()
        if self._tail is not None:
            self._tail.close()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class _Info(msgspec.Struct):
    run_id: str | None = None
    phase: str | None = None


class _Line(msgspec.Struct):
    """What a curve needs of a line in the usual shape; a line in any other shape is read as the judge reads it."""

    step: int
    metrics: dict[str, float]
    wall_time: float | None = None
    model_info: _Info = msgspec.field(default_factory=_Info)


_decode = msgspec.json.Decoder(_Line).decode


def _parse(number: int, line: bytes, problems: LineProblems) -> Event | None:
    """The event in a line, without notes and samples: in less than half of the time that `parse_event` takes."""
    try:
        read = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_event(number, line, problems)
    if abs(read.step) > MAX_STEP:
        return parse_event(number, line, problems)
    info = {name: value for name, value in (("run_id", read.model_info.run_id), ("phase", read.model_info.phase)) if value}
    return Event(read.step, read.metrics, read.wall_time, model_info=info)


def _canonical(reader: Canonicaliser, event: Event) -> Event:
    return prefix_held_out(reader.event(event) or event)


class CurveTail(LogTail):
    """A tail whose events hold step, time, run, phase and the metrics by canonical name, and nothing else."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._canonicaliser = Canonicaliser(written=True)
        super().__init__(path)

    def _parsed(self, lines: Iterable[tuple[int, bytes]]) -> list[Event]:
        events = (_parse(number, line, self.problems) for number, line in lines)
        return [_canonical(self._canonicaliser, event) for event in events if event is not None]


def sketch(path: Path) -> list[Event]:
    """Some events from all over a large event log, for a first picture before it is read; none of a small one."""
    try:
        size = path.stat().st_size
        if size < _SKETCHED_FROM:
            return []
        events: list[Event] = []
        reader, problems = Canonicaliser(written=True), LineProblems()
        with path.open("rb") as file:
            for place in np.linspace(0, max(0, size - _SKETCH_BYTES), _SKETCH_PLACES).astype(int).tolist():
                file.seek(place)
                lines = file.read(_SKETCH_BYTES).split(b"\n")[1 if place else 0 : -1]
                for line in lines[:4]:
                    if line and (event := _parse(0, line, problems)) is not None:
                        events.append(_canonical(reader, event))
    except (OSError, RLDKError):
        return []
    return events
