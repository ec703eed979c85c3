"""A log of any other kind than ours: read as a whole, and read again when it has changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from rldk.core.errors import RLDKError
from rldk.core.event import Event
from rldk.dashboard.opened import JUDGED_AT_ONCE, LOOK, Opened
from rldk.dashboard.watched import Watched
from rldk.log.problems import LineProblems
from rldk.runs.run import Run

__all__ = ["ReadTable"]


class ReadTable(Opened):
    """A log of any other kind: read as a whole beside the reader's work, and again when the file has changed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._seen: tuple[int, int] | None = None
        self._reading: threading.Thread | None = None
        self._found: list[Run] = []
        self._fresh: dict[str, Watched] = {}
        self._queue: Iterator[tuple[Watched, list[Event]]] = iter(())
        self._problems = LineProblems()

    def work(self) -> bool:
        now = time.monotonic()
        if self._reading is not None:
            if self._reading.is_alive():
                return False
            self._reading = None
            self._fresh = {run.run_id: Watched(run.run_id) for run in self._found}
            if not self.runs:
                self.runs = self._fresh  # there is nothing better to show meanwhile
            self._queue = self._all_events()
            self.skipped = self._problems.summary() if self._problems.total else ""
            return True
        if (batch := next(self._queue, None)) is not None:
            run, events = batch
            run.take(events)
            for event in events:
                run.judge(event)
            return True
        if self._seen is not None and self.progress < 1.0:
            self.progress, self.runs = 1.0, self._fresh
        if now >= self._next_look:
            self._next_look = now + 5 * LOOK
            self._look()
        return False

    def _all_events(self) -> Iterator[tuple[Watched, list[Event]]]:
        for run in self._found:
            batch: list[Event] = []
            for event in run.events():
                batch.append(event)
                if len(batch) == JUDGED_AT_ONCE:
                    yield self._fresh[run.run_id], batch
                    batch = []
            if batch:
                yield self._fresh[run.run_id], batch

    def _look(self) -> None:
        try:
            known = self.path.stat()
        except OSError as error:
            self.problem = f"The file cannot be read: {error.strerror}."
            return
        seen = (known.st_size, known.st_mtime_ns)
        if seen != self._seen:
            self._seen, self.progress = seen, 0.0
            self._reading = threading.Thread(target=self._read, daemon=True)
            self._reading.start()

    def _read(self) -> None:
        from rldk.ingest import read_runs

        self._found = []
        try:
            result = read_runs(self.path)
            self._found, self._problems = result.runs, result.files[0].problems
            self.problem = ""
        except RLDKError as error:
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001  a reader of somebody else's format must not end the page
            self.problem = f"The file cannot be read ({type(error).__name__}: {error})."

    def close(self) -> None:
        self._queue = iter(())
