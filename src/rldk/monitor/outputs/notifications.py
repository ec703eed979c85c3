"""The base of notifications, and running a command when something is raised. Stopping is the monitor's (`stop_on`)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.monitor.outputs.base import Output
from rldk.monitor.outputs.web_requests import retry_in
from rldk.monitor.worker import Worker

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Command", "Notification"]

_MAX_WAITING = 100  # messages
_CLOSE_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds between two attempts at a message; doubled after each
_APART = 1.0  # seconds between two messages to one service


class Notification(Output):
    """Base of the notifications: anomalies of at least `severity` are sent on a separate thread, so that training never waits.

    A failure is reported by the monitor the next time that something is raised, or at the end.
    """

    name: ClassVar[str] = "notification"
    own_thread: ClassVar[bool] = False
    retry_seconds: float = 0.0

    def __init__(self, severity: str = "critical") -> None:
        if severity not in SEVERITIES:
            raise UsageError(f"Expected `severity` to be one of {list(SEVERITIES)}, got {severity!r}.")
        self.severities = SEVERITIES[SEVERITIES.index(severity) :]
        self._run_id = ""
        self._worker = Worker(f"rldk {self.name}", _MAX_WAITING)
        self._closing = threading.Event()
        self._closed_by = math.inf
        self._last = -_APART

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; called on the notification's own thread."""
        raise NotImplementedError

    def start(self, monitor: Monitor) -> None:
        self._run_id = monitor.run_id

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        if raised:
            self.notify(raised)

    def alert(self, anomaly: Anomaly) -> None:
        self.notify([anomaly])

    def notify(self, raised: Sequence[Anomaly], run_id: str | None = None) -> None:
        """Send those of these anomalies that are severe enough; of the monitor's run, or of another one."""
        found = [anomaly.to_dict() for anomaly in raised if anomaly.severity in self.severities]
        if found:
            message = strict({"run_id": run_id or self._run_id, "step": found[0]["step"], "anomalies": found})
            self._worker.submit(self.with_retries, self.send, message)
        self._worker.raise_error()

    def with_retries(self, send: Callable[[Any], None], message: Any) -> None:
        """Send a message; where the service is down or refuses for now, again after growing pauses, for `retry_seconds`."""
        until, pause = time.monotonic() + self.retry_seconds, _FIRST_PAUSE
        while True:
            self._closing.wait(max(0.0, self._last + _APART - time.monotonic()))
            self._last = time.monotonic()
            try:
                return send(message)
            except Exception as error:
                wait = retry_in(error, pause)
                if wait is None or self._closing.is_set() or time.monotonic() + wait > until:
                    raise
            self._closing.wait(wait)
            pause = min(2.0 * pause, _LONGEST_PAUSE)

    def end_soon(self) -> None:
        """Make a last attempt at what is still to be sent, for up to five seconds from now."""
        self._closed_by = min(self._closed_by, time.monotonic() + _CLOSE_SECONDS)
        self._closing.set()

    def close(self) -> None:
        self.end_soon()
        self._worker.close(max(0.0, self._closed_by - time.monotonic()))
        self._worker.raise_error()


class Command(Notification):
    """Runs a command with the anomalies as JSON on its standard input, and `RLDK_RUN_ID` and `RLDK_STEP` set.

    The command is not run by a shell: a text is split into words, and nothing in a log can become part of it.
    """

    name: ClassVar[str] = "command"

    def __init__(self, command: str | Sequence[str], severity: str = "critical", timeout: float = 60.0) -> None:
        super().__init__(severity)
        self.words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        if not self.words:
            raise UsageError("Expected `command` to name a program, got an empty one.")
        self.timeout = timeout
        self._running: list[int] = []  # groups of processes that have not ended

    @property
    def key(self) -> str:
        return f"{self.name} {shlex.join(self.words)}"

    def send(self, message: dict[str, Any]) -> None:
        told = {**os.environ, "RLDK_RUN_ID": str(message["run_id"]), "RLDK_STEP": str(message["step"])}
        own_group = sys.platform != "win32"
        with subprocess.Popen(self.words, stdin=subprocess.PIPE, env=told, start_new_session=own_group) as process:
            self._running.append(process.pid)
            try:
                process.communicate(json.dumps(message).encode(), timeout=self.timeout)
            except BaseException:
                end_group(process.pid)
                raise
            finally:
                self._running = [pid for pid in self._running if group_lives(pid)]
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, self.words)

    def close(self) -> None:
        """Wait up to five seconds for the command, then end it, with all processes that it has started."""
        try:
            super().close()
        finally:
            for pid in list(self._running):
                end_group(pid)
            self._worker.close(_CLOSE_SECONDS)


def group_lives(pid: int) -> bool:
    """Whether a process of this group is still running."""
    try:
        os.killpg(pid, 0)
    except (AttributeError, OSError):  # Windows has no groups
        return False
    return True


def end_group(pid: int) -> None:
    """Ask the processes of a group to end, and kill those that have not after a second."""
    with contextlib.suppress(AttributeError, OSError):
        os.killpg(pid, signal.SIGTERM)
        for _ in range(20):
            time.sleep(0.05)
            os.killpg(pid, 0)
        os.killpg(pid, signal.SIGKILL)
