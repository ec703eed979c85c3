"""One message per incident, followed up when it grows and when it is over, delivered at least once while the service is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.text import clean
from rldk.judge.incidents.incident import Incident, group_incidents
from rldk.monitor.outputs.notifications import Notification

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["IncidentMessages", "IncidentNotification", "Message"]


@dataclass(frozen=True, slots=True)
class Message:
    """What is known of an incident now.

    `id` is that of the incident, the same in all its messages; `number` counts them. `state` is `new`, `grown` or `over`. It
    holds no prompts, responses or settings of the run.
    """

    id: str
    number: int
    state: str
    run_id: str
    step: int
    severity: str
    title: str
    evidence: str
    advice: str

    @property
    def headline(self) -> str:
        """One line: `critical at step 120 of my_run: the learning rate is too high`."""
        over = {"over": " (over)", "grown": " (has grown)"}.get(self.state, "")
        return f"{self.severity} at step {self.step} of {self.run_id}: {self.title}{over}"

    @property
    def text(self) -> str:
        """The headline, what was seen, and what to do."""
        return self.headline if self.state == "over" else f"{self.headline}\n{self.evidence}\nWhat to do: {self.advice}"


class IncidentMessages:
    """Which messages are due: each incident once, again when it becomes worse or its cause another, and when it is over."""

    def __init__(self, severities: Sequence[str]) -> None:
        self._severities = severities
        self._told: dict[str, tuple[Message, bool]] = {}

    def due(self, run_id: str, anomalies: Sequence[Anomaly]) -> list[Message]:
        """The messages that these anomalies of a run call for, given what was told before."""
        events = 1 + max((anomaly.index for anomaly in anomalies), default=0)
        found = []
        for incident in group_incidents(anomalies, events):
            over = all(anomalies[number].cleared_index is not None for number in incident.anomalies)
            message = self._message(run_id, incident, over)
            if message is not None:
                self._told[message.id] = (message, over)
                found.append(message)
        return found

    def _message(self, run_id: str, incident: Incident, over: bool) -> Message | None:
        name = f"{run_id}-{incident.anomalies[0]}"
        before, was_over = self._told.get(name, (None, False))
        if before is None and (incident.severity not in self._severities or over):
            return None
        same = before is not None and before.severity == incident.severity and (before.title == incident.title or over)
        if same and over == was_over:
            return None
        state = "new" if before is None else "over" if over else "grown"
        seen = incident.evidence[0] if incident.evidence else ""
        return Message(
            name, 1 if before is None else before.number + 1, state, clean(run_id, 100), incident.step, incident.severity,
            clean(incident.title, 200), clean(seen, 500), clean(incident.advice, 800),
        )  # fmt: skip


class IncidentNotification(Notification):
    """Base of the services that people read. A message that cannot be delivered is tried again, for `retry_seconds`.

    Args:
        severity: how severe an incident must be.
        timeout: seconds that one attempt may take.
        retry_seconds: how long a message is tried again, with growing pauses, while the service is down or refuses for now.
    """

    name: ClassVar[str] = "incidents"

    def __init__(self, severity: str = "critical", timeout: float = 10.0, retry_seconds: float = 600.0) -> None:
        super().__init__(severity)
        self.timeout, self.retry_seconds = timeout, retry_seconds
        self._messages = IncidentMessages(self.severities)
        self._handles: dict[str, Any] = {}
        self._standing = 0
        self._monitor: Monitor | None = None

    def post(self, message: Message, earlier: Any) -> Any:
        """Deliver a message, by changing `earlier` where the service can; what `post` returned for the same incident."""
        raise NotImplementedError

    def start(self, monitor: Monitor) -> None:
        super().start(monitor)
        self._monitor = monitor

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        assert self._monitor is not None
        standing = sum(anomaly.cleared_index is None for anomaly in self._monitor.anomalies)
        if raised or standing != self._standing:
            self._standing = standing
            self.follow(self._run_id, self._monitor.anomalies)

    def alert(self, anomaly: Anomaly) -> None:
        assert self._monitor is not None
        self.follow(self._run_id, self._monitor.anomalies)

    def follow(self, run_id: str, anomalies: Sequence[Anomaly]) -> None:
        """Send what the anomalies of a run, all of them so far, call for."""
        for message in self._messages.due(run_id, anomalies):
            self._worker.submit(self._deliver, message)
        self._raise()

    def _deliver(self, message: Message) -> None:
        self.with_retries(self._post, message)

    def _post(self, message: Message) -> None:
        self._handles[message.id] = self.post(message, self._handles.get(message.id))
