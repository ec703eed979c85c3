"""Real local servers for the tests of notifications: web and mail, which answer, refuse, hang or are slow as they are told."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import unquote

PNG = b"\x89PNG\r\n"


@dataclass
class Request:
    """What a web server was sent: its JSON, its picture if there is one, and the id that it names."""

    method: str
    path: str
    body: Any
    png: bytes
    headers: dict[str, str]

    @property
    def id(self) -> str:
        return unquote(self.headers.get("Idempotency-Key", ""))


class WebServer:
    """Notes what it accepts. `answers` are taken one by one: a status, `hang`, `cut`, `slow` or `drip`; 200 without any."""

    def __init__(self, port: int = 0) -> None:
        self.got: list[Request] = []
        self.refused: list[Request] = []
        self.answers: list[int | str] = []
        self.replies: dict[str, dict[str, Any]] = {}  # by the end of the path
        self.closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                request = _read(self)
                what = server.answers.pop(0) if server.answers else 200
                (server.got if what in (200, "slow", "drip") else server.refused).append(request)
                if what == "hang":
                    server.closing.wait(20)
                    return
                if what == "cut":
                    self.close_connection = True
                    return
                if what == "slow":
                    time.sleep(0.2)
                self.send_response(what if isinstance(what, int) else 200)
                self.send_header("Retry-After", "0")
                self.end_headers()
                if what == "drip":
                    while not server.closing.wait(0.05):
                        self.wfile.write(b" ")
                self.wfile.write(json.dumps(server.reply(request)).encode())

            do_POST = do_PATCH = do_PUT = answer

            def log_message(self, *_: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                """A client that has gone."""

        self.http = Quiet(("127.0.0.1", port), Handler)
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()

    def reply(self, request: Request) -> dict[str, Any]:
        named = next((body for end, body in self.replies.items() if request.path.partition("?")[0].endswith(end)), {})
        return {"ok": True, "ts": "7.1", "channel": "C1", "id": "42", **named}

    def close(self) -> None:
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def _read(handler: BaseHTTPRequestHandler) -> Request:
    content = handler.rfile.read(int(handler.headers["Content-Length"]))
    headers = dict(handler.headers)
    kind = headers.get("Content-Type", "")
    body: Any = None
    png = content if content.startswith(PNG) else b""
    if kind.startswith("multipart/"):
        form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + content, policy=policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        body, png = (parts[name].get_payload(decode=True) for name in ("payload_json", "files[0]"))
        body = json.loads(body)
    elif not png:
        body = json.loads(content)
    return Request(handler.command, handler.path, body, png, headers)


class MailServer(socketserver.StreamRequestHandler):
    """As much of a mail server as a client needs. `refuse` has answers to the end of a mail; an empty one hangs up."""

    mails: ClassVar[list[EmailMessage]] = []
    refuse: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.say("220 here")
        while line := self.rfile.readline().decode().strip():
            word = line[:4].upper()
            if word == "DATA":
                self.say("354 go on")
                mail = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    mail += part
                if self.refuse:
                    answer = self.refuse.pop()
                    if not answer:
                        return
                    self.say(answer)
                    continue
                self.mails.append(message_from_bytes(mail, policy=policy.SMTP))  # type: ignore[arg-type]
            self.say("221 bye" if word == "QUIT" else "250 ok")
            if word == "QUIT":
                return

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())
