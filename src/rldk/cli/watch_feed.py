"""Where `rldk watch` gets its events from: an event log that grows, any other log read again when it has changed, a folder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rldk.adapters.table import choose
from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.log.tail import LogTail
from rldk.runs.rows import Reader

__all__ = ["Feed", "News", "feed_of", "newest"]

_PATIENCE = 10.0
_LOGS = ("*_events.jsonl", "*.jsonl")


@dataclass(slots=True)
class News:
    """What a look at a log brought: events by run, the runs whose earlier events no longer count, and whether there is more."""

    events: dict[str, list[Event]] = field(default_factory=dict)
    started_over: bool = False
    caught_up: bool = True


class Feed(Protocol):
    """Something that can be asked for what is new."""

    path: Path

    def read_new(self) -> News:
        """What is new, without waiting."""


class EventLogFeed:
    """An event log of rldk, followed line by line; no line is read twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tail = LogTail(path)
        self._reader = Reader()
        self._generation = 0

    def read_new(self) -> News:
        news = News()
        events = self._tail.read_new()
        if self._tail.generation != self._generation:
            self._generation, news.started_over = self._tail.generation, True
        for event in events:
            canonical = self._reader.event(event)
            if canonical is not None:
                news.events.setdefault(event.run_id or _name(self.path), []).append(canonical)
        news.caught_up = self._tail.caught_up
        return news


class TableFeed:
    """A log of another framework: read again as a whole when it has changed, no more often than it is cheap to."""

    def __init__(self, path: Path, hint: str | None, field_map: Mapping[str, str] | None) -> None:
        self.path = path
        self._options = {"adapter_hint": hint, "field_map": field_map}
        self._seen: tuple[int, int] | None = None
        self._given: dict[str, list[tuple[int, int]]] = {}
        self._not_before = 0.0

    def read_new(self) -> News:
        from rldk.ingest import read_runs

        stamp = _stamp(self.path)
        began = time.monotonic()
        if stamp is None or stamp == self._seen or began < self._not_before:
            return News()
        self._seen = stamp
        try:
            runs = read_runs(self.path, **self._options).runs  # type: ignore[arg-type]
        except ReadError:
            return News()  # half written, perhaps: the next change is looked at again
        self._not_before = time.monotonic() + _PATIENCE * (time.monotonic() - began)
        found = {run.run_id: list(run.events()) for run in runs}
        news = News(started_over=any(self._differs(name, events) for name, events in found.items()))
        for name, events in found.items():
            known = 0 if news.started_over else len(self._given.get(name, ()))
            if len(events) > known:
                news.events[name] = events[known:]
        self._given = {name: _marks(events) for name, events in found.items()}
        return news

    def _differs(self, name: str, events: list[Event]) -> bool:
        """Whether rows that were given before are no longer what they were."""
        known = self._given.get(name, [])
        return _marks(events[: len(known)]) != known


def _marks(events: list[Event]) -> list[tuple[int, int]]:
    return [(event.step, len(event.metrics)) for event in events]


def _stamp(path: Path) -> tuple[int, int] | None:
    """When a file, or the newest file of a folder, was written last, and how long it is."""
    try:
        if path.is_dir():
            stats = [one.stat() for one in path.rglob("*") if one.is_file()]
            return (max(one.st_mtime_ns for one in stats), sum(one.st_size for one in stats)) if stats else None
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    except OSError:
        return None


def _name(path: Path) -> str:
    return path.name.removesuffix(".jsonl").removesuffix("_events")


def newest(folder: Path) -> Path | None:
    """The event log of a folder that was written last, or else another log in it; none where there is none yet."""
    for pattern in _LOGS:
        found = [(stamp, path) for path in folder.rglob(pattern) if path.is_file() and (stamp := _stamp(path)) is not None]
        if found:
            return max(found)[1]
    return None


def feed_of(path: Path, hint: str | None = None, field_map: Mapping[str, str] | None = None) -> Feed | None:
    """What to follow at a path; `None` while nothing is there yet that could be told apart."""
    if path.is_dir():
        log = newest(path)
        return feed_of(log, hint, field_map) if log is not None else _table(path, hint, field_map)
    stamp = _stamp(path)
    if stamp is None or stamp[1] == 0:
        return None
    if hint in (None, "rldk") and not field_map and choose(path).name == "rldk":
        try:
            return EventLogFeed(path)
        except ReadError:  # compressed: cannot be followed line by line
            return TableFeed(path, hint, field_map)
    return TableFeed(path, hint, field_map)


def _table(folder: Path, hint: str | None, field_map: Mapping[str, str] | None) -> Feed | None:
    """A folder that is one log, as of TensorBoard or W&B; `None` while it is empty."""
    if _stamp(folder) is None:
        return None
    return TableFeed(folder, hint, field_map)
