"""The dashboard's process: started, found, stopped, and gone with the one that started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rldk.core.errors import MissingDependencyError, UsageError
from rldk.core.event import Event
from rldk.dashboard import Dashboard
from rldk.dashboard.http_front import PLOTLY

from .conftest import write

psutil = pytest.importorskip("psutil")


def soon(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    pytest.importorskip("streamlit")
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "r_events.jsonl", [Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.02}) for n in range(40)])
    with Dashboard(folder, port=0) as dashboard:
        yield dashboard


@pytest.mark.full
def test_it_answers_on_this_machine_only(running: Dashboard) -> None:
    assert running.is_running
    with urllib.request.urlopen(running.url, timeout=5) as answer:
        assert answer.status == 200
    addresses = {
        connection.laddr.ip
        for connection in psutil.Process(running.pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


@pytest.mark.full
def test_the_first_answer_shows_the_run_but_not_under_a_name_of_somebody_elses(running: Dashboard) -> None:
    import plotly

    def page(host: str) -> str:
        request = urllib.request.Request(f"{running.url}/?run=r_events.jsonl", headers={"Host": host})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read().decode())

    assert soon(lambda: '<div id="rldk-first"' in page(f"localhost:{running.port}"))
    found = page("localhost")
    assert "<h1>r</h1>" in found and "40 events" in found and found.count("<svg") == 2
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        page("evil.example")
    refused.value.close()
    with urllib.request.urlopen(f"{running.url}{PLOTLY}", timeout=20) as answer:
        script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        assert answer.read() == script.read_bytes() and "javascript" in answer.headers["content-type"]


@pytest.mark.full
def test_a_port_that_is_taken_is_passed_by_and_said(running: Dashboard, caplog: pytest.LogCaptureFixture) -> None:
    other = Dashboard(running.folder, port=running.port)
    try:
        other.start_dashboard()
        assert other.port != running.port
        assert f"Port {running.port} is taken" in other.note and other.url in other.note
        assert other.note in caplog.messages
    finally:
        other.stop_dashboard()


@pytest.mark.full
def test_starting_twice_is_starting_once(running: Dashboard) -> None:
    pid = running.pid
    assert running.start_dashboard() == running.url
    assert running.pid == pid


@pytest.mark.full
def test_stopping_leaves_nothing(tmp_path: Path) -> None:
    dashboard = Dashboard(tmp_path, port=0)
    dashboard.start_dashboard()
    family = [psutil.Process(dashboard.pid), *psutil.Process(dashboard.pid).children(recursive=True)]
    dashboard.stop_dashboard()
    dashboard.stop_dashboard()
    assert not dashboard.is_running
    assert soon(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family))
    assert not listens(dashboard.port)


@pytest.mark.full
def test_it_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from rldk.dashboard import Dashboard; d = Dashboard(sys.argv[1], port=0); d.start_dashboard();"
        "print(d.pid, d.port, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid, port = map(int, parent.stdout.readline().split())
    assert listens(port)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert soon(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    assert soon(lambda: not listens(port))


@pytest.mark.full
def test_the_command_says_where_it_is_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rldk", "dashboard", str(tmp_path), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "is at http://127.0.0.1:" in line
    port = int(line.rsplit(":", 1)[1])
    assert listens(port)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    process.stdout.close()
    assert soon(lambda: not listens(port))


@pytest.mark.parametrize("port", [-1, 65536, 8501.5, True, "8501"])
def test_what_is_no_port_is_refused(tmp_path: Path, port: object) -> None:
    with pytest.raises(UsageError, match="Expected `port` to be a whole number"):
        Dashboard(tmp_path, port=port)  # type: ignore[arg-type]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").touch()
    with pytest.raises(UsageError, match="Expected `output_dir` to be a folder"):
        Dashboard(tmp_path / "run.jsonl")


def test_without_streamlit_the_message_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rldk\[dashboard\]'"):
        Dashboard(tmp_path).start_dashboard()
