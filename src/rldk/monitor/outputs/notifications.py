"""Notifications: post to a web address or run a command when something is raised. Stopping is the monitor's (`stop_on`)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.monitor.outputs.base import Output
from rldk.monitor.worker import Worker

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Command", "Notification", "Webhook"]

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
        self._worker = Worker(f"rldk {self.name}", self._failed, _MAX_WAITING)
        self._error: BaseException | None = None
        self._closing = threading.Event()
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
        self._raise()

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

    def close(self) -> None:
        """Make a last attempt at what is still to be sent, for up to five seconds."""
        self._closing.set()
        self._worker.close(_CLOSE_SECONDS)
        self._raise()

    def _failed(self, error: BaseException) -> None:
        self._error = error  # carried over to the monitor's thread, whose guard reports it

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class Webhook(Notification):
    """Posts the anomalies as JSON to a web address: `{"run_id", "step", "anomalies", "text"}`.

    `text` is one line for people, which is what Mattermost and similar services show. `id` is the same whenever a message is
    sent again, for `retry_seconds`, because the service was down or refused for now.
    """

    name: ClassVar[str] = "webhook"

    def __init__(self, url: str, severity: str = "critical", timeout: float = 5.0, retry_seconds: float = 600.0) -> None:
        super().__init__(severity)
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"Expected `url` to begin with http:// or https://, got {url!r:.80}.")
        self.url, self.timeout, self.retry_seconds = url, timeout, retry_seconds

    @property
    def key(self) -> str:
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:8]  # the address itself may be a secret
        return f"{self.name} at {urllib.parse.urlsplit(self.url).hostname} ({digest})"

    def send(self, message: dict[str, Any]) -> None:
        said = "; ".join(f"{one['severity']} {one['type']}: {one['message']}" for one in message["anomalies"])
        types = ",".join(one["type"] for one in message["anomalies"])
        name = hashlib.sha256(f"{message['run_id']} {message['step']} {types}".encode("utf-8", "replace")).hexdigest()[:16]
        text = message.get("text") or f"rldk, run {message['run_id']}, step {message['step']}: {said}"
        body = json.dumps({"id": name, **message, "text": text}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        open_address(request, self.timeout)


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


def end_group(pid: int, seconds: float = 1.0) -> None:
    """Ask the processes of a group to end, and kill those that have not after a second."""
    with contextlib.suppress(AttributeError, OSError):
        os.killpg(pid, signal.SIGTERM)
        for _ in range(20):
            time.sleep(seconds / 20)
            os.killpg(pid, 0)
        os.killpg(pid, signal.SIGKILL)


def open_address(request: urllib.request.Request, timeout: float) -> bytes:
    """The answer to a request, at most 100 kB of it."""
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return bytes(answer.read(100_000))
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise


def retry_in(error: BaseException, pause: float) -> float | None:
    """After how many seconds to try again; `None` where that would not help."""
    if isinstance(error, urllib.error.HTTPError):
        asked = str(error.headers.get("Retry-After", "")).strip()
        wait = min(float(asked), _LONGEST_PAUSE) if asked.isdigit() else 0.0
        return max(pause, wait) if error.code in (408, 425, 429) or error.code >= 500 else None
    if (code := getattr(error, "smtp_code", None)) is not None:
        return pause if 400 <= code < 500 else None
    return pause if isinstance(error, (urllib.error.URLError, TimeoutError, ConnectionError)) else None
