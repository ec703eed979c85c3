"""One message per incident, followed up when it grows and when it is over, delivered at least once while the service is there."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.core.text import clean
from rldk.judge.incidents.incident import Incident, group_incidents
from rldk.monitor.outputs.incident_plot import Curves, RecentEvents, incident_png
from rldk.monitor.outputs.notifications import Notification

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["IncidentMessages", "IncidentNotification", "Message"]

_log = logging.getLogger("rldk")


@dataclass(frozen=True, slots=True)
class Message:
    """What a service tells people.

    `id` is that of the incident, the same in all its messages; `number` counts them, and both together name the message, however
    often it is sent. `state` is `new`, `grown` or `over`; `details` is for programs, `draw` makes the plot and `png` is the
    plot. It holds no prompts, responses or settings of the run.
    """

    id: str
    number: int
    state: str
    severity: str
    title: str
    headline: str
    text: str
    details: dict[str, Any] = field(default_factory=dict)
    draw: Callable[[Curves], bytes | None] | None = None
    png: bytes | None = None

    @property
    def key(self) -> str:
        """The name of this message, the same whenever it is sent again."""
        return f"{self.id}/{self.number}"

    @property
    def headers(self) -> dict[str, str]:
        """By which a web service can tell that it has the message already."""
        return {"Idempotency-Key": quote(self.key, errors="replace")}


class IncidentMessages:
    """Which messages are due: each incident once, again when it becomes worse or its cause another, and when it is over."""

    def __init__(self, severities: Sequence[str]) -> None:
        self._severities = severities
        self._told: dict[str, tuple[Message, bool]] = {}
        self._born = f"{time.time_ns():x}"[:-5]  # a later training may have the same run id

    def due(self, run_id: str, anomalies: Sequence[Anomaly]) -> list[Message]:
        """The messages that these anomalies of a run call for, given what was told before (see `told`)."""
        events = 1 + max((anomaly.index for anomaly in anomalies), default=0)
        plain = [replace(anomaly, knobs={}) for anomaly in anomalies]  # advice must not name the settings of the run
        found = [self._message(run_id, incident, plain) for incident in group_incidents(plain, events)]
        return [message for message in found if message is not None]

    def told(self, message: Message) -> None:
        """A message is on its way."""
        self._told[message.id] = (message, message.state == "over")

    def _message(self, run_id: str, incident: Incident, anomalies: Sequence[Anomaly]) -> Message | None:
        members = [anomalies[number] for number in incident.anomalies]
        over = all(anomaly.cleared_index is not None for anomaly in members)
        name = f"{run_id}-{self._born}-{incident.anomalies[0]}"
        before, was_over = self._told.get(name, (None, False))
        if before is None and (incident.severity not in self._severities or over):
            return None
        title = clean(incident.title, 200)
        same = before is not None and before.severity == incident.severity and (before.title == title or over)
        if same and over == was_over:
            return None
        state = "new" if before is None else "over" if over else "grown"
        return _message(name, 1 if before is None else before.number + 1, state, clean(run_id, 100), incident, members)


def _message(name: str, number: int, state: str, run_id: str, incident: Incident, members: list[Anomaly]) -> Message:
    title, advice = clean(incident.title, 200), clean(incident.advice, 800)
    seen = clean(incident.evidence[0] if incident.evidence else "", 500)
    ending = {"over": " (over)", "grown": " (has grown)"}.get(state, "")
    headline = f"{incident.severity} at step {incident.step} of {run_id}: {title}{ending}"
    text = headline if state == "over" else f"{headline}\n{seen}\nWhat to do: {advice}"
    details = {
        "run_id": run_id, "step": incident.step, "severity": incident.severity, "cause": incident.cause, "title": title,
        "advice": advice, "anomalies": [{**one.to_dict(), "last_good_step": incident.last_good_step} for one in members],
    }  # fmt: skip
    draw = None if state == "over" else partial(incident_png, incident=incident, members=members)
    return Message(name, number, state, incident.severity, title, headline, text, strict(details), draw)


class IncidentNotification(Notification):
    """Base of the services that people read. A message that cannot be delivered is tried again, for `retry_seconds`.

    Args:
        severity: how severe an incident must be.
        timeout: seconds that one attempt may take.
        retry_seconds: how long a message is tried again, with growing pauses, while the service is down or refuses for now.
    """

    name: ClassVar[str] = "incidents"
    takes_plots: ClassVar[bool] = False

    def __init__(self, severity: str = "critical", timeout: float = 10.0, retry_seconds: float = 600.0) -> None:
        super().__init__(severity)
        self.timeout, self.retry_seconds = timeout, retry_seconds
        self._messages = IncidentMessages(self.severities)
        self._handles: dict[str, Any] = {}
        self._standing = 0
        self._monitor: Monitor | None = None
        self._recent = RecentEvents()
        self._attaches = self.takes_plots

    def post(self, message: Message, earlier: Any) -> Any:
        """Deliver a message, by changing `earlier` where the service can; what `post` returned for the same incident."""
        raise NotImplementedError

    def attach(self, message: Message, handle: Any) -> None:
        """Add the plot to a message that was delivered, where the service takes it separately; `handle` is what `post` gave."""

    def start(self, monitor: Monitor) -> None:
        super().start(monitor)
        self._monitor = monitor

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        assert self._monitor is not None
        if self._attaches:
            self._recent.add(event)
        standing = sum(anomaly.cleared_index is None for anomaly in self._monitor.anomalies)
        if raised or standing != self._standing:
            self._standing = standing
            self.follow(self._run_id, self._monitor.anomalies, self._recent.curves())

    def alert(self, anomaly: Anomaly) -> None:
        assert self._monitor is not None
        self.follow(self._run_id, self._monitor.anomalies, self._recent.curves())

    def follow(self, run_id: str, anomalies: Sequence[Anomaly], curves: Curves | None = None) -> None:
        """Send what the anomalies of a run, all of them so far, call for; with a plot of `curves`.

        A message for which the queue has no room is due again at the next call.
        """
        for message in self._messages.due(run_id, anomalies):
            if self._worker.submit(self.deliver, message, curves):
                self._messages.told(message)
        self._worker.raise_error()

    def deliver(self, message: Message, curves: Curves | None = None) -> None:
        """Send a message now, again while the service is down or refuses for now, and then its plot."""
        if self._attaches and curves is not None and message.draw is not None:
            message = replace(message, png=message.draw(curves))
        self.with_retries(self._post, message)
        if message.png is not None and self._attaches:
            try:
                self.attach(message, self._handles.get(message.id))
            except Exception as error:  # noqa: BLE001  the text has arrived
                self._attaches = False
                _log.warning("rldk: %s accepts messages and rejects their plots: %s", self.key, clean(error, 300))

    def _post(self, message: Message) -> None:
        self._handles[message.id] = self.post(message, self._handles.get(message.id))
