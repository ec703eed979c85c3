"""A real S3 server on this machine (moto's, in its own environment), and a proxy that makes it slow, busy and unreliable."""

from __future__ import annotations

import http.client
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venvs" / "moto" / "bin" / "python"
SERVE = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def s3_server() -> Iterator[int]:
    """Run the server; gives its port."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([PYTHON, "-c", SERVE], **pipes) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.terminate()


class Trouble:
    """What the proxy does to requests: every `busy`-th gets a 503, every `torn`-th answer ends in the middle, all wait."""

    def __init__(self, busy: int = 0, torn: int = 0, seconds: float = 0.0) -> None:
        self.busy, self.torn, self.seconds = busy, torn, seconds
        self.lock = threading.Lock()
        self.requests = self.refused = self.cut = 0

    def next(self, method: str) -> str:
        with self.lock:
            self.requests += 1
            if self.busy and self.requests % self.busy == 0:
                self.refused += 1
                return "busy"
            if method == "GET" and self.torn and self.requests % self.torn == 0:
                self.cut += 1
                return "torn"
        return "good"


@contextmanager
def proxy(port: int, trouble: Trouble) -> Iterator[int]:
    """Stand in front of a server; gives the port of the proxy."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(trouble.seconds)
            fate = trouble.next(self.command)
            if fate == "busy":
                self.send_response(503, "Slow Down")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "date", "server"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if fate == "torn":
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
                return
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
