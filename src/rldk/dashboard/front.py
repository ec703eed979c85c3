"""What the server adds to Streamlit's own page: a picture of the run in the very first answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["PLOTLY", "Front"]

logger = logging.getLogger("rldk")

PLOTLY = "/rldk/plotly.js"
"""Where the browser gets the script that draws plots: as it came with Plotly, from this machine."""

_PATIENCE = 1.5
_LEFT_OUT = (b"if-none-match", b"if-modified-since", b"accept-encoding", b"range")
_MADE_ANEW = (b"content-length", b"etag", b"last-modified", b"accept-ranges", b"cache-control")

_HEAD = (  # once the picture is painted: before that, nothing may keep the browser busy
    "<script>requestAnimationFrame(() => setTimeout(() => document.head.append(Object.assign(document.createElement('script'), "
    f"{{src: '.{PLOTLY}', id: 'rldk-plotly'}}))))</script></head>"
).encode()

Scope = MutableMapping[str, Any]


class Front:
    """ASGI middleware that puts a picture into the page that it lets through, where it is drawn in time.

    Args:
        app: what answers everything.
        draw: makes the picture for the run that the address names, if it names one.
        hosts: under which names this server may be asked for a picture. A page of somebody else's whose name leads to
            this machine must not read what is in it.
        script: the file that `PLOTLY` is answered with. The browser fetches it right after the picture, and not
            seconds later when a plot is drawn.
    """

    def __init__(self, app: Any, draw: Callable[[str | None], str], hosts: Collection[str], script: Path) -> None:
        self.app, self._draw, self._hosts, self._script = app, draw, frozenset(hosts), script

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == PLOTLY:
            from starlette.responses import FileResponse

            answer = FileResponse(self._script, media_type="text/javascript", headers={"cache-control": "max-age=3600"})
            await answer(scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in ("", "/") or not self._is_ours(scope):
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

        asked = [(name, value) for name, value in scope["headers"] if name.lower() not in _LEFT_OUT]
        await self.app({**scope, "headers": asked, "extensions": {}}, receive, take)
        page = b"".join(parts)
        if started["status"] == 200 and b"</body>" in page:
            page = self._filled(page, await _in_time(drawing))
        kept = [(name, value) for name, value in started["headers"] if name.lower() not in _MADE_ANEW]
        made = [(b"content-length", str(len(page)).encode()), (b"cache-control", b"no-store")]
        await send({**started, "headers": [*kept, *made]})
        await send({"type": "http.response.body", "body": page})

    def _is_ours(self, scope: Scope) -> bool:
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"), "")
        try:
            return "*" in self._hosts or urlsplit(f"//{given}").hostname in self._hosts
        except ValueError:
            return False

    def _drawn(self, wanted: str | None) -> str:
        try:
            return self._draw(wanted)
        except Exception:
            logger.exception("The dashboard's first picture could not be drawn")
            return ""

    def _filled(self, page: bytes, picture: str) -> bytes:
        page = page.replace(b"<title>Streamlit</title>", b"<title>rldk</title>", 1)
        page = page.replace(b"</head>", _HEAD, 1)
        return page.replace(b"</body>", f"{picture}</body>".encode(), 1)


async def _in_time(drawing: asyncio.Task[str]) -> str:
    """The picture, or none if it takes so long that the page is better without."""
    try:
        return await asyncio.wait_for(asyncio.shield(drawing), _PATIENCE)
    except asyncio.TimeoutError:
        return ""


def _wanted(scope: Scope) -> str | None:
    asked: list[str] = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("run", [])
    return asked[0] if asked else None
