"""Posts incidents as JSON to a web address of yours."""

from __future__ import annotations

import hashlib
import urllib.parse
from typing import Any, ClassVar

from rldk.core.errors import UsageError
from rldk.monitor.outputs.incident_messages import IncidentNotification, Message
from rldk.monitor.outputs.web_requests import is_address, send_json

__all__ = ["Webhook"]


class Webhook(IncidentNotification):
    """Posts incidents as JSON to a web address: `{"id", "incident", "state", "run_id", "step", "severity", "anomalies", "text"}`.

    `text` is for people, and what Mattermost and similar services show. `id` is the same whenever a message is sent again, for
    `retry_seconds`, because the service was down or refused for now; `incident` is the same in all messages about one incident,
    and `state` is `new`, `grown` or `over`.
    """

    name: ClassVar[str] = "webhook"

    def __init__(self, url: str, severity: str = "critical", timeout: float = 5.0, retry_seconds: float = 600.0) -> None:
        super().__init__(severity, timeout, retry_seconds)
        if not is_address(url):
            raise UsageError(f"Expected `url` to begin with http:// or https://, got {url!r:.80}.")
        self.url = url

    @property
    def key(self) -> str:
        digest = hashlib.sha256(self.url.encode()).hexdigest()[:8]  # the address itself may be a secret
        return f"{self.name} at {urllib.parse.urlsplit(self.url).hostname} ({digest})"

    def post(self, message: Message, earlier: Any) -> Any:
        named = {"id": message.key, "incident": message.id, "state": message.state}
        send_json(self.url, {**named, **message.details, "text": message.text}, self.timeout, message.headers)
