"""Where messages about incidents go: Slack, Discord, Teams, ntfy, e-mail, the desktop, or a web address of yours."""

from __future__ import annotations

import base64
import hashlib
import html
import shutil
import smtplib
import ssl
import subprocess
import urllib.error
import urllib.parse
from collections.abc import Iterable
from email.message import EmailMessage
from typing import Any, ClassVar

from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean
from rldk.monitor.outputs.incident_messages import IncidentNotification, Message
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


class Email(IncidentNotification):
    """E-mail by SMTP; follow-ups are replies to the first message.

    `RLDK_SMTP_URL` is `smtps://user:password@host:465`, or `smtp://…:587`, which is encrypted where the server offers it (and
    must be, if there is a password); `RLDK_MAIL_TO` the recipients, separated by commas; `RLDK_MAIL_FROM` the sender.
    """

    name: ClassVar[str] = "email"
    takes_plots: ClassVar[bool] = True

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        self._url = urllib.parse.urlsplit(secret("RLDK_SMTP_URL", "smtp://user:password@host:587"))
        if self._url.scheme not in ("smtp", "smtps") or not self._url.hostname:
            raise UsageError("Expected RLDK_SMTP_URL to be like smtp://user:password@host:587 or smtps://user:password@host:465.")
        self._to = [one.strip() for one in secret("RLDK_MAIL_TO", "the recipients, separated by commas").split(",")]
        self._from = optional("RLDK_MAIL_FROM") or self._to[0]

    def post(self, message: Message, earlier: Any) -> Any:
        mail = EmailMessage()
        mail["Subject"] = f"{'Re: ' * (earlier is not None)}rldk: {message.headline}"
        mail["From"], mail["To"] = self._from, ", ".join(self._to)
        name = hashlib.sha256(message.key.encode("utf-8", "replace")).hexdigest()[:24]
        mail["Message-ID"] = f"<{name}@rldk.local>"
        mail["X-Rldk-Id"] = message.key
        if earlier is not None:
            mail["In-Reply-To"] = mail["References"] = earlier
        mail.set_content(message.text)
        if message.png is not None:
            lines = "<br>".join(html.escape(line) for line in message.text.split("\n"))
            mail.add_alternative(f'<p>{lines}</p><img src="cid:plot" alt="{html.escape(message.title)}" width="640">', "html")
            mail.get_payload()[1].add_related(message.png, "image", "png", cid="<plot>")  # type: ignore[union-attr, index]
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
