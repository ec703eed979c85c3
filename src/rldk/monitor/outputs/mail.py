"""E-mail about incidents."""

from __future__ import annotations

import hashlib
import html
import smtplib
import ssl
import urllib.parse
from email.message import EmailMessage
from typing import Any, ClassVar

from rldk.core.errors import UsageError
from rldk.monitor.outputs.incident_messages import IncidentNotification, Message
from rldk.monitor.outputs.web_requests import optional, secret

__all__ = ["Email"]


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
