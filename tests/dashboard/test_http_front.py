"""The first answer: Streamlit's page, with a picture of the run in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.dashboard import http_front
from rldk.dashboard.http_front import PLOTLY, HttpFront

PAGE = b"<html><head><title>Streamlit</title></head><body><div id=root></div></body></html>"
LOCAL = ("127.0.0.1", "localhost", "::1")


class Inside:
    """A server that answers with a page, and remembers what it was asked."""

    def __init__(self, page: bytes = PAGE, status: int = 200) -> None:
        self.page, self.status, self.asked = page, status, {}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.asked = scope
        headers = [(b"content-length", str(len(self.page)).encode()), (b"etag", b"x"), (b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.page[:20], "more_body": True})
        await send({"type": "http.response.body", "body": self.page[20:]})


def ask(
    inside: Inside, draw: Callable[[str | None], str], path: str = "/", host: str = "localhost:8501", **scope: Any
) -> tuple[dict[bytes, bytes], bytes]:
    """The headers and the body of an answer."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    given = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"host", host.encode())], **scope}
    asyncio.run(HttpFront(inside, draw, LOCAL, Path(__file__))(given, receive, send))
    return dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


def ask_kind(inside: Inside, kind: str, headers: list[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    """What is sent in answer to a request or to the opening of a socket."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": f"{kind}.connect"}

    scope = {"type": kind, "method": "GET", "path": "/_stcore/stream", "query_string": b"", "headers": headers}
    asyncio.run(HttpFront(inside, lambda _: "", LOCAL, Path(__file__))(scope, receive, send))
    assert sent[0].get("status") == 403 or sent == [{"type": "websocket.close", "code": 1008}]
    return sent


def test_the_picture_is_in_the_page_and_the_script_for_plots_is_named() -> None:
    headers, body = ask(Inside(), lambda wanted: f"<svg>{wanted}</svg>", query_string=b"run=a%2Fb_events.jsonl&x=1")
    assert body.endswith(b"<svg>a/b_events.jsonl</svg></body></html>")
    assert f"src: '.{PLOTLY}'".encode() in body.partition(b"</head>")[0] and b"<title>rldk</title>" in body
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"cache-control"] == b"no-store" and b"etag" not in headers


def test_the_page_is_asked_for_anew_whatever_the_browser_has() -> None:
    inside = Inside()
    known = [(b"host", b"127.0.0.1"), (b"If-None-Match", b"x"), (b"accept-encoding", b"gzip"), (b"cookie", b"c")]
    assert b"<svg>" in ask(inside, lambda _: "<svg>", headers=known)[1]
    assert inside.asked["headers"] == [(b"host", b"127.0.0.1"), (b"cookie", b"c")]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8501", "localhost.evil.example", "", "[bad", "127.0.0.1.evil"])
def test_under_another_name_nothing_is_served(host: str) -> None:
    inside = Inside()
    assert b"not served" in ask(inside, lambda _: "<svg>", host=host)[1] and inside.asked == {}


OURS = (b"host", b"localhost:8501")


ELSEWHERE = ["http://evil.example", "http://localhost", "http://localhost:8502", "http://xlocalhost:8501", "null"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_page_of_another_origin_is_refused(name: str) -> None:
    inside = Inside()
    for kind in ("http", "websocket"):
        ask_kind(inside, kind, [OURS, (b"origin", name.encode())])
    assert inside.asked == {}


def test_a_page_of_this_server_is_answered_and_protected() -> None:
    headers, body = ask(Inside(), lambda _: "<svg>", headers=[OURS, (b"origin", b"http://localhost:8501")])
    assert b"<svg>" in body and headers[b"x-frame-options"] == b"DENY"
    assert b"frame-ancestors 'none'" in headers[b"content-security-policy"]


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "LOCALHOST", "[::1]:8501"])
def test_under_its_own_names_it_does(host: str) -> None:
    assert b"<svg>" in ask(Inside(), lambda _: "<svg>", host=host)[1]


def test_other_questions_pass_untouched() -> None:
    assert ask(Inside(), lambda _: "<svg>", path="/_stcore/health")[1] == PAGE
    assert ask(Inside(), lambda _: "<svg>", method="HEAD")[1] == PAGE
    assert ask(Inside(PAGE, 404), lambda _: "<svg>")[1] == PAGE


def test_a_picture_that_cannot_be_drawn_costs_nobody_the_page(caplog: pytest.LogCaptureFixture) -> None:
    def fails(wanted: str | None) -> str:
        raise ValueError("no")

    assert ask(Inside(), fails)[1].endswith(b"<div id=root></div></body></html>")
    assert "could not be drawn" in caplog.text


def test_a_picture_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "_MAX_SECONDS", 0.05)

    def slow(wanted: str | None) -> str:
        time.sleep(0.4)
        return "<svg>"

    assert b"<svg>" not in ask(Inside(), slow)[1]
