"""Notifications: post to a web address or run a command when something is raised. Stopping is the monitor's (`stop_on`)."""

from __future__ import annotations

import json
import os
import queue
import shlex
import subprocess
import threading
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.monitor.outputs.base import Output

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["Command", "Notification", "Webhook"]

_MAX_WAITING = 100  # messages
_CLOSE_SECONDS = 5.0


class Notification(Output):
    """Base of the notifications: anomalies of at least `severity` are sent on a separate thread, so that training never waits.

    A failure is reported by the monitor the next time that something is raised, or at the end, and ends the notification.
    """

    name: ClassVar[str] = "notification"

    def __init__(self, severity: str = "critical") -> None:
        if severity not in SEVERITIES:
            raise UsageError(f"Expected `severity` to be one of {list(SEVERITIES)}, got {severity!r}.")
        self.severities = SEVERITIES[SEVERITIES.index(severity) :]
        self._run_id = ""
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(_MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

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
        self._raise()
        found = [anomaly.to_dict() for anomaly in raised if anomaly.severity in self.severities]
        if not found or self._queue.full():
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"rldk {self.name}", daemon=True)
            self._thread.start()
        self._queue.put_nowait(strict({"run_id": run_id or self._run_id, "step": found[0]["step"], "anomalies": found}))

    def close(self) -> None:
        """Wait up to five seconds for what is still to be sent."""
        if self._thread is not None:
            if not self._queue.full():
                self._queue.put_nowait(None)
            self._thread.join(_CLOSE_SECONDS)
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _work(self) -> None:
        while (message := self._queue.get()) is not None:
            try:
                self.send(message)
            except Exception as error:  # noqa: BLE001  carried over to the monitor's thread, whose guard reports it
                self._error = error
                return


class Webhook(Notification):
    """Posts the anomalies as JSON to a web address: `{"run_id", "step", "anomalies", "text"}`.

    `text` is one line for people, which is what Slack, Mattermost and similar services show.
    """

    name: ClassVar[str] = "webhook"

    def __init__(self, url: str, severity: str = "critical", timeout: float = 5.0) -> None:
        super().__init__(severity)
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"Expected `url` to begin with http:// or https://, got {url!r:.80}.")
        self.url, self.timeout = url, timeout

    @property
    def key(self) -> str:
        return f"{self.name} {self.url}"

    def send(self, message: dict[str, Any]) -> None:
        said = "; ".join(f"{one['severity']} {one['type']}: {one['message']}" for one in message["anomalies"])
        body = json.dumps({**message, "text": f"rldk, run {message['run_id']}, step {message['step']}: {said}"}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=self.timeout):
            pass


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

    @property
    def key(self) -> str:
        return f"{self.name} {shlex.join(self.words)}"

    def send(self, message: dict[str, Any]) -> None:
        told = {**os.environ, "RLDK_RUN_ID": str(message["run_id"]), "RLDK_STEP": str(message["step"])}
        subprocess.run(self.words, input=json.dumps(message).encode(), env=told, timeout=self.timeout, check=True)
