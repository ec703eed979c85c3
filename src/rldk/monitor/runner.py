"""How a monitor calls its outputs: through the guard, started before use, and those that may be slow on their own threads."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.monitor.guard import PASSING, Guard
from rldk.monitor.outputs import Output
from rldk.monitor.worker import Worker

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["OutputRunner", "ThreadedRunner", "key_of", "runner_of"]

_MAX_WAITING = 1000  # calls of an output on its own thread
_MAX_MISSED = 10_000  # calls that wait for a disk
_CLOSE_SECONDS = 10.0


def key_of(output: Output) -> str:
    """The key of an output; one whose key cannot be read is named by its class."""
    try:
        return str(output.key)
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001  a key is a name for messages: it must not cost the output, let alone the training
        return f"{type(output).__name__} at {id(output):#x}"


def runner_of(output: Output, guard: Guard) -> OutputRunner:
    """How this output is called: on its own thread if it may be slow. With `strict`, its errors are raised to the caller."""
    return ThreadedRunner(output, guard) if output.own_thread and not guard.strict else OutputRunner(output, guard)


class OutputRunner:
    """Calls one output on the thread of the training. One that cannot start, as on a full disk, starts later."""

    def __init__(self, output: Output, guard: Guard) -> None:
        self.output, self.guard = output, guard
        self.key = key_of(output)
        self._monitor: Monitor | None = None
        self._started = False
        self._missed: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque(maxlen=_MAX_MISSED)

    def start(self, monitor: Monitor) -> None:
        """The run begins."""
        self._monitor = monitor
        self._call(_nothing)

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        """Hand on an event."""
        self._call(self.output.take, event, raised)

    def alert(self, anomaly: Anomaly) -> None:
        """Hand on an anomaly that was raised between two events."""
        self._call(self.output.alert, anomaly)

    def save(self, step: int) -> None:
        """A checkpoint was saved."""
        self._call(self.output.save, step)

    def end_soon(self) -> None:
        """The run is over, and `close` follows."""
        if self._started:
            self.guard.attempt(self.key, self.output.end_soon)

    def close(self) -> None:
        """Close the output, whatever has failed before; one that could not start for a while starts first."""
        if not self._started and self.guard.may_recover(self.key):
            self._start()
        for function, args in self._missed:
            self.guard.attempt(self.key, function, *args)
        if self._started:
            self.output.close()

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        if self._started and self.key not in self.guard.broken:
            self.guard.call(self.key, function, *args)
        elif not self._started and self.guard.is_due(self.key):
            self.guard.call(self.key, self._start)
            self._catch_up(function, *args)
        else:
            self._catch_up(function, *args)

    def _catch_up(self, function: Callable[..., None], *args: Any) -> None:
        """Make the calls that were missed while a disk was full, and this one; keep what it is not yet time for."""
        self._missed.append((function, args))
        while self._missed and self._started and self.guard.is_due(self.key):
            missed, given = self._missed.popleft()
            self.guard.call(self.key, missed, *given)
        if not self.guard.may_recover(self.key):
            self._missed.clear()

    def _start(self) -> None:
        assert self._monitor is not None
        self.output.start(self._monitor)
        self._started = True


class ThreadedRunner(OutputRunner):
    """Calls one output on a thread of its own, so that training never waits for it.

    At most `max_waiting` calls wait; while it is further behind it misses events, which is reported once. `close` waits
    `close_seconds` for the rest.
    """

    def __init__(
        self, output: Output, guard: Guard, max_waiting: int = _MAX_WAITING, close_seconds: float = _CLOSE_SECONDS
    ) -> None:
        super().__init__(output, guard)
        self._close_seconds = close_seconds
        self._worker = Worker(f"rldk {self.key}", max_waiting, lambda error: guard.report(self.key, error))

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._call(self.output.take, replace(event, metrics=dict(event.metrics)), list(raised))

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        if not self._worker.submit(super()._call, function, *args):
            self.guard.say(
                ("slow", self.key), logging.WARNING,
                "rldk: %s is too slow: %d calls wait for it, and events are skipped until it has caught up. Training continues.",
                self.key, self._worker.max_waiting,
            )  # fmt: skip

    def end_soon(self) -> None:
        self._worker.submit(super().end_soon)

    def close(self) -> None:
        left = self._worker.close(self._close_seconds, lambda: self.guard.each([(self.key, super(ThreadedRunner, self).close)]))
        if left:
            self.guard.say(
                ("left", self.key), logging.WARNING,
                "rldk: %s did not end within %g seconds: %d calls that waited for it were not made.",
                self.key, self._close_seconds, left,
            )  # fmt: skip


def _nothing() -> None:
    pass
