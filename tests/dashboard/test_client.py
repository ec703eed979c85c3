"""The process that reads: it answers, is started again when it dies, and does not outlive the page."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.dashboard.client import Client, ReaderEnded, RemoteRun
from rldk.dashboard.processes import numbers, receive, send

from .conftest import write


def test_a_page_sees_a_run_through_the_reader(tmp_path: Path) -> None:
    write(tmp_path / "r_events.jsonl", [Event(n, {"reward_mean": n / 3}) for n in range(20)])
    client = Client(tmp_path)
    try:
        assert [file[0] for file in client.ask("list")["files"]] == ["r_events.jsonl"]
        until = time.monotonic() + 20
        while client.ask("state", key="r_events.jsonl").get("judged") != 20 and time.monotonic() < until:
            time.sleep(0.05)
        state = client.ask("state", key="r_events.jsonl")
        x, (y,) = RemoteRun(client, "r_events.jsonl", None, state["drawn"], "r").points(["reward_mean"], 100)
        assert x.tolist() == list(range(20)) and y.tolist() == [n / 3 for n in range(20)]
    finally:
        client.close()


def test_a_reader_that_dies_is_started_again(tmp_path: Path) -> None:
    client = Client(tmp_path)
    try:
        client.ask("list")
        process = client._process
        assert process is not None
        process.kill()
        with pytest.raises(ReaderEnded):
            for _ in range(100):
                client.ask("list")
                time.sleep(0.01)
                if client._process is not process:
                    raise ReaderEnded("it was seen to be gone before it was asked")
        assert client.ask("list")["files"] == []
    finally:
        client.close()


def test_the_reader_ends_with_its_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rldk.dashboard.reader_process", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        send(process.stdin, {"name": "list", "arguments": {}})
        assert receive(process.stdout)["files"] == []
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_message_comes_through_as_it_was(tmp_path: Path) -> None:
    pipe = io.BytesIO()
    send(pipe, {"x": np.array([1.0, np.nan]), "text": "é\x1b", "n": np.float32(2.0), "path": tmp_path, "none": None})
    pipe.seek(0)
    found = receive(pipe)
    assert numbers(found["x"]).tolist()[0] == 1.0 and np.isnan(numbers(found["x"])[1])
    assert (found["text"], found["n"], found["path"], found["none"]) == ("é\x1b", 2.0, str(tmp_path), None)
    with pytest.raises(EOFError):
        receive(pipe)
