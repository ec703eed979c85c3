"""The new events of a log that is being written: an event log line by line, a log in any other format by reading it again."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from rldk.core.errors import RLDKError
from rldk.core.event import Event
from rldk.ingest.choose import choose
from rldk.ingest.discovery import stamp_of
from rldk.ingest.read import read_runs
from rldk.log.blocks import BLOCK_BYTES, compression_of
from rldk.log.tail import LogTail
from rldk.runs.canonical import Canonicaliser
from rldk.runs.run import Run
from rldk.runs.table import ABSENT

__all__ = ["EventLog", "GrowingLog", "NewEvents", "RereadLog", "open_growing_log", "run_name"]

logger = logging.getLogger("rldk")

_PAUSE = 10.0  # a log that takes a second to read is read again every ten


@dataclass(slots=True)
class NewEvents:
    """Events with the name of their run, in canonical terms; `restarted` says that those given before no longer count.

    `runs` are the whole runs, of a log that is read as a whole.
    """

    events: Iterator[tuple[str, Event]]
    restarted: bool = False
    runs: Sequence[Run] = ()


class GrowingLog(ABC):
    """A log that is being written.

    Attributes:
        framework: who writes it, where that is known.
        has_more: whether the next `read_new` has something to give at once.
        problem: why it cannot be read; empty while it can.
        skipped: how many lines could not be read, and why; empty where all could.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.framework: str | None = None
        self.has_more = True
        self.problem = ""
        self.skipped = ""

    @abstractmethod
    def read_new(self) -> NewEvents | None:
        """What it has gained since the last call, `None` where that is nothing; it never waits."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class EventLog(GrowingLog):
    """An event log of rldk: each line is read once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.framework = "rldk"
        self._tail = LogTail(path)
        self._canonicaliser = Canonicaliser(written=True)
        self._generation = 0

    def read_new(self) -> NewEvents | None:
        position = self._tail.position
        events = self._tail.read_new()
        restarted = self._tail.generation != self._generation
        self._generation = self._tail.generation
        if restarted:
            self._canonicaliser = Canonicaliser(written=True)
        self.has_more = self._tail.position - position > BLOCK_BYTES // 2  # a tail reads a block at a time
        self.skipped = self._tail.problems.summary() if self._tail.problems.total else ""
        if not events and not restarted:
            return None
        canonical = (self._canonicaliser.event(event) for event in events)
        return NewEvents(((run_name(event, self.path), event) for event in canonical if event is not None), restarted)

    def close(self) -> None:
        self._tail.close()


def run_name(event: Event, path: Path) -> str:
    """The run that an event belongs to: the one it names, or else the one that the file is named after."""
    return event.run_id or path.name.removesuffix(".jsonl").removesuffix("_events")


class RereadLog(GrowingLog):
    """A log in any other format: read as a whole, in a separate thread, and again when the file has changed."""

    def __init__(self, path: Path, adapter_hint: str | None = None, field_map: Mapping[str, str] | None = None) -> None:
        super().__init__(path)
        self._runs: list[Run] = []
        self._given: dict[str, Run] = {}
        self._options = (adapter_hint, field_map)
        self._stamp: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self._not_before = 0.0
        self.has_more = False

    @property
    def is_reading(self) -> bool:
        """Whether the file is being read now, or was and its rows have not been asked for."""
        return self._thread is not None

    def read_new(self) -> NewEvents | None:
        if self._thread is not None:
            if self._thread.is_alive():
                return None
            self._thread = None
            return self._new_rows()
        stamp = stamp_of(self.path)
        if stamp is not None and stamp != self._stamp and time.monotonic() >= self._not_before:
            self._stamp = stamp
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        return None

    def close(self) -> None:
        self._thread = None

    def _read(self) -> None:
        began = time.monotonic()
        hint, field_map = self._options
        try:
            found = read_runs(self.path, adapter_hint=hint, field_map=field_map)
            problems = found.files[0].problems
            self._runs, self.framework, self.problem = found.runs, found.files[0].framework, ""
            self.skipped = problems.summary() if problems.total else ""
        except RLDKError as error:  # half written, perhaps: the next change is read again
            self.problem = str(error)
        except Exception as error:
            logger.exception("%s could not be read", self.path)
            self.problem = f"rldk cannot read {self.path}: {type(error).__name__}: {error}."
        self._not_before = time.monotonic() + _PAUSE * (time.monotonic() - began)

    def _new_rows(self) -> NewEvents | None:
        runs, given = self._runs, self._given
        restarted = any(not _continues(given[run.run_id], run) for run in runs if run.run_id in given)
        if restarted:
            given = {}
        if all(len(run) == len(given.get(run.run_id, ())) for run in runs):
            return None
        self._given = {run.run_id: run for run in runs}
        rows = ((run, islice(run.events(), len(given.get(run.run_id, ())), None)) for run in runs)
        return NewEvents(((run.run_id, event) for run, events in rows for event in events), restarted, runs)


def _continues(old: Run, new: Run) -> bool:
    """Whether a run begins with the very rows of the same run as it was read before."""
    size = len(old)
    if len(new) < size or not np.array_equal(new.steps[:size], old.steps):
        return False
    for name, column in new.columns.items():
        before = old.columns.get(name)
        if before is None:
            if (column.state[:size] != ABSENT).any():
                return False
        elif not np.array_equal(column.state[:size], before.state) or not np.array_equal(
            column.values[:size], before.values, equal_nan=True
        ):
            return False
    return old.columns.keys() <= new.columns.keys()


def open_growing_log(
    path: Path, adapter_hint: str | None = None, field_map: Mapping[str, str] | None = None
) -> GrowingLog | None:
    """The log at a path, to be followed; `None` while there is nothing in it.

    Raises:
        ReadError: rldk cannot read what is there.
    """
    stamp = stamp_of(path)
    if stamp is None or stamp[0] == 0:
        return None
    if adapter_hint in (None, "rldk") and not field_map and not path.is_dir() and choose(path).name == "rldk":
        with path.open("rb") as file:
            if compression_of(file.read(4)) is None:  # else there are no lines to follow
                return EventLog(path)
    return RereadLog(path, adapter_hint, field_map)
