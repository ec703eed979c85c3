"""The judgement of a run that is still being written; `rldk watch` and the dashboard show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from rldk.core.anomaly import Anomaly
from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.ingest.follow import GrowingLog, RereadLog, open_growing_log
from rldk.judge.config import ScanConfig
from rldk.judge.incidents.advice import Setup
from rldk.judge.result import Result, result_of
from rldk.judge.scan import with_logged_settings
from rldk.judge.whole_steps import WholeSteps
from rldk.runs.run import Run

__all__ = ["FollowedRun", "LogFollower"]

_RETRY = 0.5
_MAX_RUNS = 200


class FollowedRun:
    """A run that is being written, judged as far as it has been read.

    Limits and targets that the live run had, and wrote into its first event, hold here too, as in `judge_run`.
    """

    def __init__(self, run_id: str, framework: str | None = None, config: ScanConfig | None = None) -> None:
        self.run_id = run_id
        self._framework = framework
        self._config = config or ScanConfig()
        self._run_config = RunConfig()
        self._note = ""
        self.judge = self._config.judge()
        self._whole_steps = WholeSteps()
        self._source: Run | None = None
        self._result: Result | None = None

    def attach(self, run: Run) -> None:
        """The whole run as it was read last, where its log is read as a whole: it knows more than its events."""
        self._source, self._result = run, None

    def take(self, event: Event) -> list[Anomaly]:
        """Judge the next event, whose metrics have canonical names. Returns the anomalies that it raises."""
        if not self.judge.engine.events and isinstance(logged := event.model_info.get("config"), Mapping):
            self._run_config = RunConfig.of(logged)
            settings, self._note = with_logged_settings(self._config, self._run_config)
            self.judge = settings.judge()
        self._result = None
        return [raised for whole in self._whole_steps.complete(event) for raised in self._judge_step(whole)]

    def flush(self) -> list[Anomaly]:
        """Judge what was read of a step that the log holds in several rows, which waits for the next step otherwise."""
        held = self._whole_steps.release()
        return [] if held is None else self._judge_step(held)

    def _judge_step(self, event: Event) -> list[Anomaly]:
        return self.judge.take_measured(self.judge.measured(event))

    @property
    def events(self) -> int:
        """How many events have been judged."""
        return self.judge.engine.events

    @property
    def result(self) -> Result:
        """All that is known of the run now."""
        if self._result is None:
            keys = self._source.coverage.metrics.values() if self._source is not None else ()
            setup = Setup(self._framework, self._run_config, frozenset(keys))
            self._result = result_of(self.judge, self._source, setup)
            if self._note:
                self._result.notes.insert(0, self._note)
        return self._result


R = TypeVar("R", bound=FollowedRun)


class LogFollower(Generic[R]):
    """Follows a log in any format and judges the runs in it.

    Args:
        path: the log, which need not exist yet.
        make_run: makes a run of its name and its framework, when its first event is read.
        adapter_hint: the adapter to read it with; by default chosen by the content.
        field_map: keys of the user's own and the metrics they stand for.

    Attributes:
        log: what is followed; `None` until there is something to read.
        runs: by name, in the order in which they appeared; the last 200 of a file.
        latest: the run of the last event.
        events: how many events have been read so far.
        busy: whether the next `read` has something to do at once.
        restarts: how often the log was replaced or shortened, so that its runs were judged from the start.
    """

    def __init__(
        self,
        path: Path,
        make_run: Callable[[str, str | None], R],
        *,
        adapter_hint: str | None = None,
        field_map: Mapping[str, str] | None = None,
    ) -> None:
        self.path = path
        self.log: GrowingLog | None = None
        self.runs: dict[str, R] = {}
        self.latest: R | None = None
        self.events = 0
        self.busy = False
        self.restarts = 0
        self._make_run = make_run
        self._options = (adapter_hint, field_map)
        self._problem = ""
        self._next_try = 0.0
        self._events: Iterator[tuple[str, Event]] | None = None
        self._dropped: set[str] = set()

    def open(self) -> bool:
        """Whether there is a log to read; if not, its path is checked again, at most twice per second."""
        now = time.monotonic()
        if self.log is None and now >= self._next_try:
            self._next_try = now + _RETRY
            try:
                self.log, self._problem = open_growing_log(self.path, *self._options), ""
            except ReadError as error:  # its first line may be half written
                self._problem = str(error)
        return self.log is not None

    @property
    def problem(self) -> str:
        """Why the log cannot be read; empty while it can."""
        return self._problem or (self.log.problem if self.log is not None else "")

    @property
    def is_reading(self) -> bool:
        """Whether the log is being read as a whole, which `read` does not wait for."""
        return isinstance(self.log, RereadLog) and self.log.is_reading

    def read(self, limit: int | None = None) -> list[tuple[R, Anomaly]]:
        """Judge what is new, at most `limit` events of it. Returns the anomalies that were raised, with the run of each."""
        if self._events is None:
            self._events = self._next_events()
        raised: list[tuple[R, Anomaly]] = []
        count = 0
        for name, event in islice(self._events or (), limit):
            count += 1
            run = self.run(name)
            if run is not None:
                self.latest = run
                raised += [(run, anomaly) for anomaly in run.take(event)]
        self.events += count
        if limit is None or count < limit:
            self._events = None
            raised += [(run, anomaly) for run in self.runs.values() for anomaly in run.flush()]
        self.busy = self._events is not None or (self.log is not None and self.log.has_more)
        return raised

    def _next_events(self) -> Iterator[tuple[str, Event]] | None:
        if not self.open():
            return None
        assert self.log is not None
        try:
            new = self.log.read_new()
            self._problem = ""
        except ReadError as error:
            self._problem, self.log.has_more = str(error), False
            return None
        if new is None:
            return None
        if new.restarted:
            self.runs, self.latest = {}, None
            self._dropped.clear()
            self.restarts += 1
        for source in new.runs:
            if (run := self.run(source.run_id)) is not None:
                run.attach(source)
        return new.events

    def run(self, name: str) -> R | None:
        """The run of that name, created at the first call; `None` for one that was dropped to make room for later ones."""
        found = self.runs.get(name)
        if found is None and name not in self._dropped:
            found = self.runs[name] = self._make_run(name, self.log.framework if self.log is not None else None)
            if len(self.runs) > _MAX_RUNS:
                oldest = next(iter(self.runs))
                self._dropped.add(oldest)
                del self.runs[oldest]
        return found

    def close(self) -> None:
        """Close the log."""
        if self.log is not None:
            self.log.close()
