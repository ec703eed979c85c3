"""Requests to web services: JSON or forms with a picture, bounded in time and size, and when a failed one is worth repeating.

Addresses and tokens of services come from environment variables only.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from rldk.core.errors import UsageError

__all__ = ["address", "is_address", "optional", "retry_in", "secret", "send_bytes", "send_form", "send_json"]

_MAX_ANSWER = 100_000  # bytes
_LONGEST_PAUSE = 60.0  # seconds that a service may ask to wait
_FOR_GOOD = (FileNotFoundError, PermissionError, ssl.SSLCertVerificationError)


def is_address(text: str) -> bool:
    """Whether a text is a web address."""
    return text.startswith(("http://", "https://"))


def optional(name: str) -> str:
    """The value of an environment variable; empty where it is not set."""
    return os.environ.get(name, "").strip()


def secret(name: str, what: str) -> str:
    """The value of an environment variable that must be set."""
    value = optional(name)
    if not value:
        raise UsageError(f"Set the environment variable {name} to {what}.")
    return value


def address(name: str, what: str) -> str:
    """A web address from the environment."""
    url = secret(name, what)
    if not is_address(url):
        raise UsageError(f"Expected the address in {name} to begin with http:// or https://.")
    return url


def send_json(
    url: str, body: Mapping[str, Any], timeout: float, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> Any:
    """Send JSON; the JSON of the answer."""
    given = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
    return send_bytes(url, json.dumps(body).encode(), timeout, given, method)


def send_form(
    url: str, body: Mapping[str, Any], png: bytes, timeout: float, headers: Mapping[str, str] | None = None, method: str = "POST"
) -> Any:
    """Send JSON (as `payload_json`) and a picture (as `files[0]`) as a form; the JSON of the answer."""
    mark = uuid.uuid4().hex
    parts = [
        ('name="payload_json"', "application/json", json.dumps(body).encode()),
        ('name="files[0]"; filename="plot.png"', "image/png", png),
    ]
    head = "--{}\r\nContent-Disposition: form-data; {}\r\nContent-Type: {}\r\n\r\n"
    form = b"".join(head.format(mark, name, kind).encode() + content + b"\r\n" for name, kind, content in parts)
    form += f"--{mark}--\r\n".encode()
    return send_bytes(url, form, timeout, {"Content-Type": f"multipart/form-data; boundary={mark}", **(headers or {})}, method)


def send_bytes(url: str, body: bytes, timeout: float, headers: Mapping[str, str], method: str = "POST") -> Any:
    """Send bytes, and read the JSON of the answer; `None` where it is something else."""
    request = urllib.request.Request(url, body, {"User-Agent": "rldk", **headers}, method=method)
    try:
        return json.loads(_open_address(request, timeout))
    except ValueError:
        return None


def _open_address(request: urllib.request.Request, timeout: float) -> bytes:
    """The answer to a request, at most 100 kB of it; what comes too slowly is left."""
    until = time.monotonic() + timeout
    found = b""
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            while len(found) < _MAX_ANSWER and time.monotonic() < until and (part := answer.read1(_MAX_ANSWER)):
                found += part
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise
    return found


def _asked_pause(header: str) -> float:
    """The seconds to wait that a server asks for, as a number of them or as a date; 0 where it does not say."""
    if header.isdigit():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    return (until - datetime.now(until.tzinfo)).total_seconds()


def retry_in(error: BaseException, pause: float) -> float | None:
    """After how many seconds to try again; `None` where that would not help."""
    if isinstance(error, urllib.error.HTTPError):
        wait = min(_asked_pause(str(error.headers.get("Retry-After", "")).strip()), _LONGEST_PAUSE)
        return max(pause, wait) if error.code in (408, 425, 429) or error.code >= 500 else None
    refused = [code for code, _ in getattr(error, "recipients", {}).values()]  # of smtplib
    code = getattr(error, "smtp_code", None) or max(refused, default=None)
    if code is not None:
        return pause if 400 <= code < 500 else None
    inner = getattr(error, "reason", None)
    passing = isinstance(error, (OSError, http.client.HTTPException))
    return pause if passing and not isinstance(error, _FOR_GOOD) and not isinstance(inner, _FOR_GOOD) else None
