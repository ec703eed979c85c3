"""Notifications from the dashboard: one message per incident of the runs that are being written, followed up, and no others."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.dashboard import Dashboard
from rldk.dashboard.folder import Folder
from rldk.dashboard.notifier_process import Notifier
from rldk.dashboard.processes import VARIABLE, options_of, packed_options
from rldk.monitor.outputs import notifications as base

from .conftest import write

SECONDS = 30.0


class Server:
    """A web server that keeps what it is sent."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/topic"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def wait(self, count: int) -> list[dict[str, Any]]:
        until = time.monotonic() + SECONDS
        while len(self.got) < count and time.monotonic() < until:
            time.sleep(0.02)
        return self.got


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(base, "_APART", 0.0)
    made = Server()
    monkeypatch.setenv("RLDK_NTFY_URL", made.url)
    yield made
    made.http.shutdown()
    made.http.server_close()


def follow(notifier: Notifier, until: Callable[[], bool]) -> None:
    """Let it work until something holds, and then until it has nothing to do."""
    end = time.monotonic() + SECONDS
    while not until() and time.monotonic() < end:
        notifier._next_search = 0.0
        notifier.work()
    assert until()
    while notifier.work():
        pass


def judged(notifier: Notifier) -> int:
    return sum(one.follower.events for one in notifier._followed.values())


def sick_for_a_while(run_id: str = "mine") -> list[Event]:
    """A healthy reward that is not a number for some rows, and then recovers."""
    made = []
    for step in range(200):
        reward = float("nan") if 100 <= step < 130 else 1.0 + 0.01 * (step % 7)
        made.append(Event(step, {"reward_mean": reward, "kl_mean": 0.02, "loss": 0.5}, model_info={"run_id": run_id}))
    return made


def test_an_incident_is_reported_once_and_followed_up_when_it_is_over(server: Server, tmp_path: Path) -> None:
    events = sick_for_a_while()
    log = write(tmp_path / "mine_events.jsonl", events[:99])
    notifier = Notifier(Folder(tmp_path), ["ntfy"])
    follow(notifier, lambda: judged(notifier) == 99)
    assert server.got == []
    write(log, events[99:125])
    follow(notifier, lambda: judged(notifier) == 125)
    assert len(server.wait(1)) == 1 and "critical at step" in server.got[0]["title"] and "mine" in server.got[0]["title"]
    write(log, events[125:])
    follow(notifier, lambda: judged(notifier) == 200)
    server.wait(2)
    notifier.close()
    assert [one["title"].endswith("(over)") for one in server.got] == [False, True]


def test_what_is_over_before_it_is_first_read_is_not_reported(server: Server, tmp_path: Path) -> None:
    write(tmp_path / "mine_events.jsonl", sick_for_a_while())
    notifier = Notifier(Folder(tmp_path), ["ntfy"])
    follow(notifier, lambda: judged(notifier) == 200)
    notifier.close()
    assert server.got == []


def test_a_run_that_ended_long_ago_is_not_followed(server: Server, tmp_path: Path, sick_events: list[Event]) -> None:
    old = write(tmp_path / "old_events.jsonl", sick_events)
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    write(tmp_path / "new_events.jsonl", sick_for_a_while()[:50])
    notifier = Notifier(Folder(tmp_path), ["ntfy"])
    follow(notifier, lambda: judged(notifier) == 50)
    notifier.close()
    assert server.got == [] and list(notifier._followed) == ["new_events.jsonl"]


def test_two_logs_with_runs_of_one_name_are_told_apart(server: Server, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / folder / "mine_events.jsonl", sick_for_a_while()[:125])
    notifier = Notifier(Folder(tmp_path), ["ntfy"])
    follow(notifier, lambda: judged(notifier) == 250)
    server.wait(2)
    notifier.close()
    names = sorted(one["title"].split(" of ")[1].split(":")[0] for one in server.got)
    assert len(names) == 2 and names[0] != names[1] and all("mine" in name for name in names)


def test_a_service_that_refuses_is_reported_on_the_page_without_its_address(tmp_path: Path) -> None:
    write(tmp_path / "mine_events.jsonl", sick_for_a_while()[:125])
    refused = "http://127.0.0.1:9/secret-token"
    notifier = Notifier(Folder(tmp_path), [refused])
    follow(notifier, lambda: judged(notifier) == 125)
    notifier.close()
    told = notifier.answer("status", {})
    assert told["followed"] == 1 and any("failed" in line for line in told["said"])
    assert "secret-token" not in json.dumps(told)


def test_wrong_names_and_missing_variables_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLDK_SLACK_URL", raising=False)
    monkeypatch.delenv("RLDK_SLACK_TOKEN", raising=False)
    with pytest.raises(UsageError, match=r"slcak.*Did you mean slack"):
        Dashboard(tmp_path, notify="slcak")
    with pytest.raises(UsageError, match="RLDK_SLACK_URL"):
        Dashboard(tmp_path, notify=["slack"])
    with pytest.raises(UsageError, match="severity"):
        Dashboard(tmp_path, notify="https://example.org/x", notify_on="fatal")


def test_addresses_reach_the_process_by_its_environment() -> None:
    for damaged in ("", "{", "[" * 100_000, "[]", '{"notify": 5}'):
        assert options_of({VARIABLE: damaged}) == ([], "critical")
    assert options_of({}) == ([], "critical")
    assert options_of({VARIABLE: packed_options(["ntfy"], "warning")}) == (["ntfy"], "warning")


@pytest.mark.full
def test_the_dashboard_reports_although_no_page_is_open(server: Server, tmp_path: Path, sick_events: list[Event]) -> None:
    pytest.importorskip("streamlit")
    psutil = pytest.importorskip("psutil")
    write(tmp_path / "sick_events.jsonl", sick_events)
    with Dashboard(tmp_path, port=0, notify=server.url) as dashboard:
        server.wait(1)
        processes = [psutil.Process(dashboard.pid), *psutil.Process(dashboard.pid).children(recursive=True)]
        assert not any(server.url in word for process in processes for word in process.cmdline())
    assert server.got and server.got[0]["anomalies"] and "critical at step" in server.got[0]["text"]
    gone, alive = psutil.wait_procs(processes, timeout=SECONDS)
    assert len(gone) == len(processes) and not alive
