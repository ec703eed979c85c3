"""A thread with a bounded queue, for what training must not wait for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Worker"]


class Worker:
    """Makes calls one after another on a thread of its own, which the first of them starts.

    Args:
        name: the name of the thread.
        max_waiting: how many calls may wait; `submit` refuses more.
        on_error: called with what a call raises, on this thread. The calls after it are still made. By default the error is
            kept for `raise_error`.
    """

    def __init__(self, name: str, max_waiting: int, on_error: Callable[[BaseException], None] | None = None) -> None:
        self.name, self.max_waiting = name[:60], max_waiting
        self._on_error = self._keep if on_error is None else on_error
        self._error: BaseException | None = None
        self._calls: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, function: Callable[..., Any], *args: Any) -> bool:
        """Make this call as soon as those before it are done; `False`, and no call, if too many wait or it is closed."""
        with self._changed:
            if self._closed or len(self._calls) >= self.max_waiting:
                return False
            self._calls.append((function, args))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)
                self._thread.start()
            self._changed.notify()
        return True

    def raise_error(self) -> None:
        """Raise what a call has raised since the last time, on the caller's thread, so that a monitor's guard reports it."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _keep(self, error: BaseException) -> None:
        self._error = error

    def close(self, seconds: float, last: Callable[[], Any] | None = None) -> int:
        """End the thread after the calls that wait and `last`, waiting at most so long; how many calls were not made.

        A call that takes longer is left to itself: the thread is a daemon, and ends with that call.
        """
        with self._changed:
            if self._thread is not None and last is not None and not self._closed:
                self._calls.append((last, ()))
            self._closed = True
            self._changed.notify()
        if self._thread is None:
            return 0
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)
        with self._changed:
            left = len(self._calls) + self._thread.is_alive()
            self._calls.clear()
        return left

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._calls:
                    if self._closed:
                        return
                    self._changed.wait()
                function, args = self._calls.popleft()
            try:
                function(*args)
            except BaseException as error:  # noqa: BLE001  a call that fails must not end the thread
                self._on_error(error)
