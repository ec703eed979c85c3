"""Runs in S3, on a real server that is slow, busy and drops connections: every file arrives whole, and only once."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from rldk.cli.main import COMMANDS, main
from rldk.core.errors import ReadError
from rldk.storage import copies
from rldk.storage.copies import local_copies
from rldk.testing.checkpoints import write_course

from .conftest import write_run
from .s3_server import PYTHON, Trouble, proxy, s3_server

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not PYTHON.exists(), reason="moto is not installed: `make .venvs/moto/.installed` sets it up"),
]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The server with six runs in a bucket, and a file of weights beside them."""
    from obstore.store import S3Store

    folder = tmp_path_factory.mktemp("runs")
    with s3_server() as port:
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region": "us-east-1"}
        endpoint = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT"), timeout=60).close()
        store = S3Store("bucket", endpoint=endpoint, client_options={"allow_http": True}, config=keys)
        for number in range(6):
            path = write_run(folder / f"run{number}.jsonl", "entropy_explosion" if number == 2 else None, seed=number, steps=100)
            store.put(f"team/run{number}/log.jsonl", path.read_bytes())
        store.put("team/run0/model.safetensors", b"0" * 1000)
        for path in write_course(folder / "checkpoints", 2):
            store.put(f"weights/{path.name}/model.safetensors", (path / "model.safetensors").read_bytes())
            store.put(f"weights/{path.name}/optimizer.pt", b"0" * 1000)
        yield port


@pytest.fixture
def bucket(server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server}")
    monkeypatch.setenv("RLDK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(copies, "FIRST_WAIT", 0.01)
    return server


def test_a_scan_of_a_bucket_names_the_runs_by_their_addresses(bucket: int, capsys: Capture) -> None:
    assert main(["scan", "s3://bucket/team", "--json"]) == 1
    out, error = capsys.readouterr()
    answer = json.loads(out)
    assert error == ""
    assert [run["path"] for run in answer["runs"]] == [f"s3://bucket/team/run{number}/log.jsonl" for number in range(6)]
    assert [run["verdict"] for run in answer["runs"]].count("critical") == 1
    assert "cache" not in out, "the copy is nobody's business"


def test_through_trouble_every_file_arrives_whole_and_only_once(
    bucket: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contents(local_copies("s3://bucket/team"))
    monkeypatch.setenv("RLDK_CACHE", str(tmp_path / "other"))
    trouble = Trouble(busy=3, torn=4, seconds=0.02)
    with proxy(bucket, trouble) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        folder = local_copies("s3://bucket/team")
        assert contents(folder) == whole and len(whole) == 6, "and no weights"
        assert trouble.refused and trouble.cut, "the proxy made trouble"
        before, trouble.busy, trouble.torn = trouble.requests, 0, 0
        local_copies("s3://bucket/team")
        assert trouble.requests - before <= 2, "a list, and no file again"


def test_a_server_that_is_always_busy_is_an_error_in_one_sentence(bucket: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "ATTEMPTS", 2)
    monkeypatch.setattr(copies, "_RETRY", {"max_retries": 0})
    with proxy(bucket, Trouble(busy=1)) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        with pytest.raises(ReadError, match="s3://bucket/team cannot be read, after 2 attempts"):
            local_copies("s3://bucket/team")


def test_a_changed_object_is_copied_again_and_one_that_is_gone_is_removed(bucket: int) -> None:
    from obstore.store import S3Store

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region": "us-east-1"}
    store = S3Store("bucket", endpoint=f"http://127.0.0.1:{bucket}", client_options={"allow_http": True}, config=keys)
    store.put("changing/a.jsonl", b"one")
    store.put("changing/b.jsonl", b"two")
    assert contents(local_copies("s3://bucket/changing")) == {"a.jsonl": b"one", "b.jsonl": b"two"}
    store.put("changing/a.jsonl", b"ONE")
    store.delete("changing/b.jsonl")
    assert contents(local_copies("s3://bucket/changing")) == {"a.jsonl": b"ONE"}, "of the same size, and another etag"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_bucket_that_is_not_there_is_an_error_in_one_sentence(bucket: int) -> None:
    with pytest.raises(ReadError, match="s3://other/x"):
        local_copies("s3://other/x")


RUNS, RUN, SICK = "s3://bucket/team", "s3://bucket/team/run0/log.jsonl", "s3://bucket/team/run2/log.jsonl"
READING: dict[str, list[str]] = {
    "scan": [RUNS], "report": [RUNS], "compare": [RUN, SICK], "gate": [SICK], "replay": [SICK], "ingest": [RUNS],
    "bundle": [SICK], "ack": [SICK, "entropy_explosion", "--reason", "known"], "watch": [RUN, "--plain", "--idle", "0.1"],
    "checkpoints": ["s3://bucket/weights"], "index": [RUNS], "runs": [RUNS], "fleet": [RUNS], "digest": [RUNS],
    "dashboard": [RUNS, "--no-browser", "--port", "0"], "mcp": [RUNS],
}  # fmt: skip
"""Every command that reads a path, with an address in place of it."""

NOT_READING = {"run", "explain", "demo", "doctor", "init", "completion", "catalog"}


def test_every_command_that_reads_a_path_is_tried_with_an_address() -> None:
    assert set(READING) | NOT_READING == set(COMMANDS)


@pytest.mark.parametrize("command", sorted(READING.keys() - {"dashboard", "mcp"}))
def test_a_command_reads_an_address(
    bucket: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if command in ("runs", "fleet", "digest"):
        assert main(["index", RUNS]) == 0
        capsys.readouterr()
    status = main([command, *READING[command]])
    out, error = capsys.readouterr()
    assert status in (0, 1) and error == "" and out
    if command == "checkpoints":
        assert "checkpoint" in out and not list((tmp_path / "cache").rglob("optimizer.pt")), "only the weights are copied"
    if command in ("scan", "gate", "replay", "report"):
        assert status == (0 if command in ("report", "replay") else 1), "it has seen the run that is sick"


@pytest.mark.parametrize("command", ["dashboard", "mcp"])
def test_a_server_reads_an_address(bucket: int, command: str) -> None:
    """It says that it serves, and ends when it is told to."""
    call = [sys.executable, "-m", "rldk", command, *READING[command]]
    pipe = subprocess.PIPE
    with subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        if command == "dashboard":
            said = process.stdout.readline()
            process.terminate()
            assert said.startswith("The dashboard of "), said
        else:
            process.stdin.close()
            assert process.wait(60) == 0, process.stdout.read()
