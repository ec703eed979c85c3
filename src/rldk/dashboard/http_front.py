"""The first answer of the server: Streamlit's page with a picture of the run in it, drawn before any script has loaded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

__all__ = ["PLOTLY", "HttpFront"]

logger = logging.getLogger("rldk")

PLOTLY = "/rldk/plotly.js"
"""The address of Plotly's script, which this server delivers from the installed package."""

_MAX_SECONDS = 1.5
_PATIENCE = 5000  # milliseconds until Plotly is run although no connection was seen
_DROPPED_REQUEST_HEADERS = (b"if-none-match", b"if-modified-since", b"accept-encoding", b"range")
_DROPPED_ANSWER_HEADERS = (b"content-length", b"etag", b"last-modified", b"accept-ranges", b"cache-control")

_HEAD = f"""<script>
// Plotly is fetched when the first picture is painted, and run when the page has asked the server for the run: the answer takes
// as long as that. Run earlier, it would delay the question.
(() => {{
  const add = (kind, given) => document.head.append(Object.assign(document.createElement(kind), given));
  const seen = new MutationObserver(() => document.querySelector('[data-test-connection-state=CONNECTED]') && setTimeout(run));
  const run = () => {{
    seen.disconnect();
    if (!document.getElementById('rldk-plotly')) add('script', {{ src: '.{PLOTLY}', id: 'rldk-plotly' }});
  }};
  requestAnimationFrame(() => setTimeout(() => {{
    add('link', {{ rel: 'preload', as: 'script', href: '.{PLOTLY}', fetchPriority: 'low' }});
    seen.observe(document.body, {{ childList: true, subtree: true, attributeFilter: ['data-test-connection-state'] }});
    setTimeout(run, {_PATIENCE});
  }}));
}})();
</script></head>""".encode()

_PROTECTION = (  # of every answer: nothing from elsewhere, in no foreign frame. Streamlit and Plotly need inline code and eval
    (b"content-security-policy", b"default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
     b"style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; object-src 'none'; base-uri 'self'; form-action 'self'"),
    (b"x-frame-options", b"DENY"), (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
)  # fmt: skip

Scope = MutableMapping[str, Any]


class HttpFront:
    """ASGI middleware that puts a picture into Streamlit's page, if it is drawn in time.

    Args:
        app: the application behind it.
        draw: makes the picture of the run that the address names, or of the newest run.
        hosts: the host names that are served. A foreign page whose name resolves to this machine must not read it.
        script: the file of Plotly's script. The browser fetches it right after the picture, seconds before the first
            plot needs it.
        parts: further scripts of the page, which the browser fetches while it runs the first ones.
    """

    def __init__(
        self, app: Any, draw: Callable[[str | None], str], hosts: Collection[str], script: Path, parts: Iterable[str] = ()
    ) -> None:
        self.app, self._draw, self._hosts, self._script = app, draw, frozenset(hosts), script
        links = [f'<link rel="modulepreload" fetchpriority="low" href="./{quote(part)}">' for part in parts]
        self._head = "".join(links).encode() + _HEAD

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] in ("http", "websocket") and not (self._is_ours(scope) and _is_same_origin(scope)):
            await _refuse(scope, receive, send)
            return

        async def protected(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_PROTECTION]
            await send(message)

        await self._answer(scope, receive, protected)

    async def _answer(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == PLOTLY:
            from starlette.responses import FileResponse

            answer = FileResponse(self._script, media_type="text/javascript", headers={"cache-control": "max-age=3600"})
            await answer(scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in ("", "/"):
            await self.app(scope, receive, send)
            return
        drawing = asyncio.create_task(asyncio.to_thread(self._drawn, _wanted(scope)))
        started: dict[str, Any] = {}
        parts: list[bytes] = []

        async def take(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            else:
                parts.append(message.get("body", b""))

        asked = [(name, value) for name, value in scope["headers"] if name.lower() not in _DROPPED_REQUEST_HEADERS]
        await self.app({**scope, "headers": asked, "extensions": {}}, receive, take)
        page = b"".join(parts)
        if started["status"] == 200 and b"</body>" in page:
            page = self._filled(page, await _in_time(drawing))
        kept = [(name, value) for name, value in started["headers"] if name.lower() not in _DROPPED_ANSWER_HEADERS]
        made = [(b"content-length", str(len(page)).encode()), (b"cache-control", b"no-store")]
        await send({**started, "headers": [*kept, *made]})
        await send({"type": "http.response.body", "body": page})

    def _is_ours(self, scope: Scope) -> bool:
        try:
            return "*" in self._hosts or urlsplit(f"//{_header(scope, b'host')}").hostname in self._hosts
        except ValueError:
            return False

    def _drawn(self, wanted: str | None) -> str:
        try:
            return self._draw(wanted)
        except Exception:
            logger.exception("The first picture of the dashboard could not be drawn")
            return ""

    def _filled(self, page: bytes, picture: str) -> bytes:
        page = page.replace(b"<title>Streamlit</title>", b"<title>rldk</title>", 1)
        page = page.replace(b"</head>", self._head, 1)
        return page.replace(b"</body>", f"{picture}</body>".encode(), 1)


def _header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted), "")


def _is_same_origin(scope: Scope) -> bool:
    """Whether a page that sends its origin is one of this server: the same host and port, to the letter."""
    origin = _header(scope, b"origin")
    return not origin or origin.partition("://")[2].lower() == _header(scope, b"host").lower()


async def _refuse(scope: Scope, receive: Any, send: Any) -> None:
    """Answer a request of a foreign page, or for a foreign host name."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    body = b"This address is not served here."
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode()), *_PROTECTION]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _in_time(drawing: asyncio.Task[str]) -> str:
    """The picture; empty if it is not ready in time."""
    try:
        return await asyncio.wait_for(asyncio.shield(drawing), _MAX_SECONDS)
    except asyncio.TimeoutError:
        return ""


def _wanted(scope: Scope) -> str | None:
    asked: list[str] = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("run", [])
    return asked[0] if asked else None
