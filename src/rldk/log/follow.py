"""Follow the events of a log that is still being written."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.log.lines import MAX_LINE_BYTES
from rldk.log.tail import LogTail

__all__ = ["Follower", "follow_events"]

_NAP = 0.05  # how long a stop that is a function may go unnoticed

Stop = threading.Event | Callable[[], bool]


class Follower(LogTail):
    """An iterator over the events of a growing log that waits for the next one.

    What happens to the file meanwhile is told as in `LogTail`: the `generation` of an event is the one that stands when
    it is given. Iterating sleeps between looks and ends when it is stopped or has been idle for too long; it can be
    taken up again. A consumer with a loop of its own (a dashboard) calls `read_new` and `wait` instead.

    Args:
        path: the log, which need not exist yet.
        poll: seconds between two looks at the file.
        stop: ends the iteration once it is set (an event: at once) or true (a function: within 50 ms).
        from_start: give what is there already; otherwise only what comes after now.
        idle_timeout: end the iteration after this many seconds without a new line.
        max_line_bytes: a longer line is skipped.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        poll: float = 0.2,
        stop: Stop | None = None,
        from_start: bool = True,
        idle_timeout: float | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        if not poll > 0:
            raise UsageError(f"Expected `poll` to be a positive number of seconds, got {poll!r}.")
        super().__init__(path, from_start=from_start, max_line_bytes=max_line_bytes)
        self.poll = poll
        self.idle_timeout = idle_timeout
        self._stop = stop if isinstance(stop, threading.Event) else threading.Event()
        self._asked = None if isinstance(stop, threading.Event) else stop
        self._ready: deque[Event] = deque()
        self._last_growth = time.monotonic()

    @property
    def stopped(self) -> bool:
        """Whether the follower was told to stop."""
        return self._stop.is_set() or (self._asked is not None and self._asked())

    @property
    def idle_seconds(self) -> float:
        """How long ago the last new line was seen."""
        return time.monotonic() - self._last_growth

    def stop(self) -> None:
        """End the iteration, from any thread; what is written but not given yet can still be had by `read_new`."""
        self._stop.set()

    def wait(self) -> None:
        """Sleep for one `poll`, or until the follower is stopped."""
        until = time.monotonic() + self.poll
        while not self.stopped and (left := until - time.monotonic()) > 0:
            self._stop.wait(left if self._asked is None else min(left, _NAP))

    def read_new(self) -> list[Event]:
        """The next events, without waiting; at most about 1 MiB of the log at a time, until `caught_up`.

        All events of one call belong to the `generation` that stands when it returns.
        """
        if self._ready:  # read by the iteration, and not given yet
            events = list(self._ready)
            self._ready.clear()
            return events
        events = super().read_new()
        if not self.caught_up:
            self._last_growth = time.monotonic()
        return events

    def __iter__(self) -> Follower:
        return self

    def __next__(self) -> Event:
        while not self.stopped:
            if self._ready:
                return self._ready.popleft()
            self._ready.extend(self.read_new())
            if not self._ready and self.caught_up:
                if self.idle_timeout is not None and self.idle_seconds >= self.idle_timeout:
                    break
                self.wait()
        raise StopIteration

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def follow_events(
    path: str | os.PathLike[str],
    *,
    poll: float = 0.2,
    stop: Stop | None = None,
    from_start: bool = True,
    idle_timeout: float | None = None,
) -> Follower:
    """Follow a log: `for event in follow_events(path): ...`; see `Follower` for what it can tell beside the events."""
    return Follower(path, poll=poll, stop=stop, from_start=from_start, idle_timeout=idle_timeout)
