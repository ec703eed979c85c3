"""Slack, Discord, Teams, ntfy, e-mail and the desktop. Addresses and tokens come from the environment, and are never logged."""

from __future__ import annotations

import json
import os
import shutil
import smtplib
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from email.message import EmailMessage
from email.utils import make_msgid
from typing import Any, ClassVar

from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean
from rldk.monitor.outputs.incident_messages import IncidentNotification, Message
from rldk.monitor.outputs.notifications import Notification, Webhook, open_address

__all__ = ["Desktop", "Discord", "Email", "Ntfy", "Slack", "Teams", "notifications"]


def secret(name: str, what: str) -> str:
    """The value of an environment variable that must be set."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise UsageError(f"Set the environment variable {name} to {what}.")
    return value


def address(name: str, what: str) -> str:
    """A web address from the environment."""
    url = secret(name, what)
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"Expected the address in {name} to begin with http:// or https://.")
    return url


def send_json(
    url: str, body: Mapping[str, Any], timeout: float, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> Any:
    """Send JSON, and read the JSON of the answer; `None` where it is something else."""
    given = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "rldk", **(headers or {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), given, method=method)
    try:
        return json.loads(open_address(request, timeout))
    except ValueError:
        return None


class Slack(IncidentNotification):
    """A Slack channel. `RLDK_SLACK_URL` is the address of an incoming webhook.

    With `RLDK_SLACK_TOKEN` (of a bot that may `chat:write`) and `RLDK_SLACK_CHANNEL` instead, a message is edited in place when
    its incident grows or is over.
    """

    name: ClassVar[str] = "slack"
    api: ClassVar[str] = "https://slack.com/api"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._token = os.environ.get("RLDK_SLACK_TOKEN", "").strip()
        if self._token:
            self._channel = secret("RLDK_SLACK_CHANNEL", "the channel to post to, such as #training")
        else:
            self._url = address("RLDK_SLACK_URL", "the address of an incoming webhook of Slack")

    def post(self, message: Message, earlier: Any) -> Any:
        text = message.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # nothing in a log calls @channel
        if not self._token:
            send_json(self._url, {"text": text}, self.timeout)
            return None
        body: dict[str, Any] = {"text": text, "channel": self._channel}
        if earlier is not None:
            body |= {"channel": earlier["channel"], "ts": earlier["ts"]}
        method = "chat.postMessage" if earlier is None else "chat.update"
        answer = send_json(f"{self.api}/{method}", body, self.timeout, {"Authorization": f"Bearer {self._token}"}) or {}
        if not answer.get("ok"):
            raise UsageError(f"Slack refused the message: {str(answer.get('error'))[:100]}.")
        return {"channel": answer["channel"], "ts": answer["ts"]}


class Discord(IncidentNotification):
    """A Discord channel: `RLDK_DISCORD_URL` is the address of a webhook. Messages are edited in place."""

    name: ClassVar[str] = "discord"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = address("RLDK_DISCORD_URL", "the address of a webhook of Discord").rstrip("/")

    def post(self, message: Message, earlier: Any) -> Any:
        body = {"content": message.text[:1900], "allowed_mentions": {"parse": []}}
        if earlier is not None:
            send_json(f"{self._url}/messages/{urllib.parse.quote(earlier)}", body, self.timeout, method="PATCH")
            return earlier
        answer = send_json(f"{self._url}?wait=true", body, self.timeout) or {}
        return answer.get("id")


class Teams(IncidentNotification):
    """A Microsoft Teams channel: `RLDK_TEAMS_URL` is the address of a workflow that posts cards."""

    name: ClassVar[str] = "teams"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = address("RLDK_TEAMS_URL", "the address of a workflow of Teams that posts to a channel")

    def post(self, message: Message, earlier: Any) -> Any:
        lines = [{"type": "TextBlock", "text": line, "wrap": True} for line in message.text.split("\n")]
        card = {"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4"}
        content = {**card, "body": lines}
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": content}
        send_json(self._url, {"type": "message", "attachments": [attachment]}, self.timeout)


class Ntfy(IncidentNotification):
    """A topic of ntfy: `RLDK_NTFY_URL` is `https://ntfy.sh/my-topic` or yours; `RLDK_NTFY_TOKEN` if the server needs one."""

    name: ClassVar[str] = "ntfy"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._server, _, self._topic = address("RLDK_NTFY_URL", "the address of a topic of ntfy").rstrip("/").rpartition("/")
        token = os.environ.get("RLDK_NTFY_TOKEN", "").strip()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def post(self, message: Message, earlier: Any) -> Any:
        priority = 2 if message.state == "over" else 5 if message.severity == "critical" else 3
        tags = ["white_check_mark" if message.state == "over" else "rotating_light" if priority == 5 else "warning"]
        body = {
            "topic": self._topic, "title": message.headline, "message": message.text, "priority": priority, "tags": tags,
        }  # fmt: skip
        send_json(self._server, body, self.timeout, self._headers)


class Email(IncidentNotification):
    """E-mail by SMTP; follow-ups are replies to the first message.

    `RLDK_SMTP_URL` is `smtps://user:password@host:465`, or `smtp://…:587`, which is encrypted where the server offers it (and
    must be, if there is a password); `RLDK_MAIL_TO` the recipients, separated by commas; `RLDK_MAIL_FROM` the sender.
    """

    name: ClassVar[str] = "email"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = urllib.parse.urlsplit(secret("RLDK_SMTP_URL", "smtp://user:password@host:587"))
        if self._url.scheme not in ("smtp", "smtps") or not self._url.hostname:
            raise UsageError("Expected RLDK_SMTP_URL to be like smtp://user:password@host:587 or smtps://user:password@host:465.")
        self._to = [one.strip() for one in secret("RLDK_MAIL_TO", "the recipients, separated by commas").split(",")]
        self._from = os.environ.get("RLDK_MAIL_FROM", "").strip() or self._to[0]

    def post(self, message: Message, earlier: Any) -> Any:
        mail = EmailMessage()
        mail["Subject"] = f"{'Re: ' * (earlier is not None)}rldk: {message.headline}"
        mail["From"], mail["To"] = self._from, ", ".join(self._to)
        mail["Message-ID"] = make_msgid(domain="rldk.local")
        mail["X-Rldk-Id"] = f"{message.id}/{message.number}"
        if earlier is not None:
            mail["In-Reply-To"] = mail["References"] = earlier
        mail.set_content(message.text)
        with self._connection() as server:
            server.send_message(mail)
        return earlier or mail["Message-ID"]

    def _connection(self) -> smtplib.SMTP:
        host, safe = str(self._url.hostname), ssl.create_default_context()
        if self._url.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, self._url.port or 465, timeout=self.timeout, context=safe)
        else:
            server = smtplib.SMTP(host, self._url.port or 25, timeout=self.timeout)
            server.ehlo()
            if server.has_extn("starttls"):
                server.starttls(context=safe)
            elif self._url.password:
                server.close()
                raise UsageError("The mail server offers no encryption, and the password would be sent in the clear.")
        if self._url.username:
            server.login(urllib.parse.unquote(self._url.username), urllib.parse.unquote(self._url.password or ""))
        return server


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


_BY_NAME: dict[str, type[IncidentNotification]] = {kind.name: kind for kind in (Slack, Discord, Teams, Ntfy, Email, Desktop)}


def notifications(given: str | Iterable[str], severity: str = "critical") -> list[Notification]:
    """The notifications of these names (`slack`, `discord`, `teams`, `ntfy`, `email`, `desktop`) or web addresses."""
    found: list[Notification] = []
    for one in [given] if isinstance(given, str) else given:
        if one.startswith(("http://", "https://")):
            found.append(Webhook(one, severity))
        elif one in _BY_NAME:
            found.append(_BY_NAME[one](severity))
        else:
            near = did_you_mean(one, _BY_NAME)
            raise UsageError(f"Expected a web address or one of {sorted(_BY_NAME)}, got {one!r:.80}.{near}")
    return found
