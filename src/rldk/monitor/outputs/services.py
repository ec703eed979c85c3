"""Where messages about incidents go: Slack, Discord, Teams, ntfy, the desktop, a web address of yours; and the table of all."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import urllib.error
import urllib.parse
from collections.abc import Iterable
from typing import Any, ClassVar

from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean
from rldk.monitor.outputs.incident_messages import IncidentNotification, Message
from rldk.monitor.outputs.mail import Email
from rldk.monitor.outputs.web_requests import address, is_address, optional, secret, send_bytes, send_form, send_json

__all__ = ["Desktop", "Discord", "Email", "Ntfy", "Slack", "Teams", "Webhook", "notifications"]

_SLACK_LATER = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited"})


class Slack(IncidentNotification):
    """A Slack channel. `RLDK_SLACK_URL` is the address of an incoming webhook, which takes no plots.

    With `RLDK_SLACK_TOKEN` (of a bot that may `chat:write`) and `RLDK_SLACK_CHANNEL` instead, a message is edited in place when
    its incident grows or is over. If the bot may also `files:write`, the plots are in the thread of the message.
    """

    name: ClassVar[str] = "slack"
    takes_plots: ClassVar[bool] = True
    api: ClassVar[str] = "https://slack.com/api"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._token = optional("RLDK_SLACK_TOKEN")
        if self._token:
            self._channel = secret("RLDK_SLACK_CHANNEL", "the channel to post to, such as #training")
        else:
            self._url = address("RLDK_SLACK_URL", "the address of an incoming webhook of Slack")
            self._attaches = False

    def post(self, message: Message, earlier: Any) -> Any:
        text = message.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # nothing in a log calls @channel
        if not self._token:
            send_json(self._url, {"text": text}, self.timeout, message.headers)
            return None
        body: dict[str, Any] = {"text": text, "channel": self._channel}
        if earlier is not None:
            body |= {"channel": earlier["channel"], "ts": earlier["ts"]}
        answer = self._call("chat.postMessage" if earlier is None else "chat.update", body, message)
        return {"channel": answer["channel"], "ts": answer["ts"]}

    def attach(self, message: Message, handle: Any) -> None:
        assert message.png is not None
        form = urllib.parse.urlencode({"filename": "plot.png", "length": len(message.png)})
        place = self._call(f"files.getUploadURLExternal?{form}", {}, message)
        send_bytes(place["upload_url"], message.png, self.timeout, {"Content-Type": "image/png"})
        files = [{"id": place["file_id"], "title": message.title}]
        body = {"files": files, "channel_id": handle["channel"], "thread_ts": handle["ts"]}
        self._call("files.completeUploadExternal", body, message)

    def _call(self, method: str, body: dict[str, Any], message: Message) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", **message.headers}
        answer: dict[str, Any] = send_json(f"{self.api}/{method}", body, self.timeout, headers) or {}
        if answer.get("ok"):
            return answer
        why = str(answer.get("error"))[:100]
        if why in _SLACK_LATER:
            raise ConnectionError(f"Slack refuses for now: {why}.")
        raise UsageError(f"Slack refused {method.partition('?')[0]}: {why}.")


class Discord(IncidentNotification):
    """A Discord channel: `RLDK_DISCORD_URL` is the address of a webhook. Messages have the plot and are edited in place."""

    name: ClassVar[str] = "discord"
    takes_plots: ClassVar[bool] = True

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = address("RLDK_DISCORD_URL", "the address of a webhook of Discord").rstrip("/")

    def post(self, message: Message, earlier: Any) -> Any:
        body: dict[str, Any] = {"content": message.text[:1900], "allowed_mentions": {"parse": []}}
        place, method = f"{self._url}?wait=true", "POST"
        if earlier is not None:
            place, method = f"{self._url}/messages/{urllib.parse.quote(earlier)}", "PATCH"
        if message.png is not None:
            body["attachments"] = [{"id": 0, "filename": "plot.png"}]  # in place of an earlier plot
            answer = send_form(place, body, message.png, self.timeout, message.headers, method)
        else:
            answer = send_json(place, body, self.timeout, message.headers, method)
        return earlier or (answer or {}).get("id")


class Teams(IncidentNotification):
    """A Microsoft Teams channel: `RLDK_TEAMS_URL` is the address of a workflow that posts cards, which take no files."""

    name: ClassVar[str] = "teams"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = address("RLDK_TEAMS_URL", "the address of a workflow of Teams that posts to a channel")

    def post(self, message: Message, earlier: Any) -> Any:
        lines = [{"type": "TextBlock", "text": line, "wrap": True} for line in message.text.split("\n")]
        card = {"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4"}
        content = {**card, "body": lines}
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": content}
        send_json(self._url, {"type": "message", "attachments": [attachment]}, self.timeout, message.headers)


class Ntfy(IncidentNotification):
    """A topic of ntfy: `RLDK_NTFY_URL` is `https://ntfy.sh/my-topic` or yours; `RLDK_NTFY_TOKEN` if the server needs one.

    The plot is an attachment, where the server permits them.
    """

    name: ClassVar[str] = "ntfy"
    takes_plots: ClassVar[bool] = True

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = address("RLDK_NTFY_URL", "the address of a topic of ntfy").rstrip("/")
        token = optional("RLDK_NTFY_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def post(self, message: Message, earlier: Any) -> Any:
        priority = 2 if message.state == "over" else 5 if message.severity == "critical" else 3
        tag = "white_check_mark" if message.state == "over" else "rotating_light" if priority == 5 else "warning"
        headers = {**self._headers, **message.headers}
        if message.png is not None and self._attaches:
            told = {"Title": message.headline, "Message": message.text.replace("\n", "\\n"), "Filename": "plot.png"}
            given = {name: _header(text) for name, text in told.items()} | {"Priority": str(priority), "Tags": tag}
            try:
                send_bytes(self._url, message.png, self.timeout, {**headers, **given}, "PUT")
                return
            except urllib.error.HTTPError as error:
                if error.code not in (400, 405, 413, 501, 507):  # no attachments, too large, or no room for it
                    raise
                self._attaches = False
        server, _, topic = self._url.rpartition("/")
        body = {"topic": topic, "title": message.headline, "message": message.text, "priority": priority, "tags": [tag]}
        send_json(server, body, self.timeout, headers)


def _header(text: str) -> str:
    """A text as the value of a header, which is ASCII."""
    return text if text.isascii() else f"=?UTF-8?B?{base64.b64encode(text.encode()).decode()}?="


class Desktop(IncidentNotification):
    """The desktop of this machine: `notify-send` on Linux, `osascript` on macOS."""

    name: ClassVar[str] = "desktop"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        if shutil.which("notify-send") is None and shutil.which("osascript") is None:
            raise UsageError("Showing notifications needs `notify-send` (Debian: apt install libnotify-bin) or `osascript`.")

    def post(self, message: Message, earlier: Any) -> Any:
        body = message.text.partition("\n")[2] or message.headline
        if program := shutil.which("notify-send"):
            urgency = "critical" if message.severity == "critical" and message.state != "over" else "normal"
            words = [program, "--app-name=rldk", f"--urgency={urgency}", "--", message.headline, body]
        else:
            script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
            words = ["osascript", "-e", script, message.headline, body]
        subprocess.run(words, check=True, timeout=self.timeout, capture_output=True)


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


_BY_NAME: dict[str, type[IncidentNotification]] = {kind.name: kind for kind in (Slack, Discord, Teams, Ntfy, Email, Desktop)}


def notifications(given: str | Iterable[str], severity: str = "critical") -> list[IncidentNotification]:
    """The notifications of these names (`slack`, `discord`, `teams`, `ntfy`, `email`, `desktop`) or web addresses."""
    found: list[IncidentNotification] = []
    for one in [given] if isinstance(given, str) else given:
        if is_address(one):
            found.append(Webhook(one, severity))
        elif one in _BY_NAME:
            found.append(_BY_NAME[one](severity))
        else:
            near = did_you_mean(one, _BY_NAME)
            raise UsageError(f"Expected a web address or one of {sorted(_BY_NAME)}, got {one!r:.80}.{near}")
    return found
