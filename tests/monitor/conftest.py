from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from servers import MailServer, WebServer

from rldk.cli.main import main


@pytest.fixture
def scan(capsys: pytest.CaptureFixture[str]) -> Any:
    """`rldk scan PATH --json`, as a user runs it: the judgement of the one run in the file."""

    def run(path: Path, *options: str) -> dict[str, Any]:
        capsys.readouterr()
        main(["scan", str(path), "--json", *options])
        found = json.loads(capsys.readouterr().out)["runs"]
        assert len(found) == 1
        return found[0]  # type: ignore[no-any-return]

    return run


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A web server of this machine."""
    made = WebServer()
    yield made
    made.close()


@pytest.fixture
def smtp(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[MailServer]]:
    """A mail server of this machine, to which `email` is set up."""
    MailServer.mails, MailServer.refuse = [], []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailServer) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        monkeypatch.setenv("RLDK_SMTP_URL", f"smtp://127.0.0.1:{made.server_address[1]}")
        monkeypatch.setenv("RLDK_MAIL_TO", "me@example.org, you@example.org")
        yield MailServer
        made.shutdown()
        thread.join()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notifications that wait hardly at all between two attempts."""
    from rldk.monitor.outputs import notifications as base

    monkeypatch.setattr(base, "_APART", 0.0)
    monkeypatch.setattr(base, "_FIRST_PAUSE", 0.01)
