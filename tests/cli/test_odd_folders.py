"""What is in a folder and cannot be opened as a log is skipped, and listed with the reason, as text and as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links as on POSIX")

ROWS = "".join(json.dumps({"step": step, "reward": 0.1 * step, "kl": 0.01, "loss": 1.0}) + "\n" for step in range(30))
SKIPPED = {
    "pipe.jsonl": "is a pipe",
    "zero_events.jsonl": "is a device or a socket",
    "socket.jsonl": "is a device or a socket",
    "self.jsonl": "leads in a circle",
    "gone.csv": "does not exist",
    "up": "leads in a circle",
    "elsewhere": "is a link to a folder elsewhere",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runs"
    made.mkdir()
    (made / "run.jsonl").write_text(ROWS)
    os.mkfifo(made / "pipe.jsonl")
    (made / "zero_events.jsonl").symlink_to("/dev/zero")
    (made / "self.jsonl").symlink_to("self.jsonl")
    (made / "gone.csv").symlink_to("nowhere")
    (made / "up").symlink_to("..")
    (tmp_path / "other").mkdir()
    (made / "elsewhere").symlink_to(tmp_path / "other")
    (made / "inside").mkdir()
    (made / "latest").symlink_to("inside")  # searched by itself: nothing is missing
    here = os.open(made, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{here}/socket.jsonl")
    os.close(here)
    return made


def listed(passed_over: list[dict[str, Any]]) -> dict[str, str]:
    return {Path(one["path"]).name: one["reason"] for one in passed_over}


def check(found: dict[str, str]) -> None:
    assert found.keys() == SKIPPED.keys()
    assert {name: why for name, why in found.items() if SKIPPED[name] not in why} == {}


@pytest.mark.parametrize("command", [["scan", "--jobs", "1"], ["scan", "--jobs", "2"], ["report"], ["ingest"], ["index"]])
def test_what_cannot_be_opened_is_in_the_json(
    folder: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if command == ["index"]:
        pytest.importorskip("pyarrow")
    options = ["-o", str(tmp_path / "page.html")] if command == ["report"] else []
    assert main([command[0], str(folder), "--json", *command[1:], *options]) == 0
    check(listed(json.loads(capsys.readouterr().out)["passed_over"]))
    if options:
        page = (tmp_path / "page.html").read_text()
        assert all(name in page for name in SKIPPED)


@pytest.mark.parametrize("command", ["scan", "index"])
def test_what_cannot_be_opened_is_in_the_text(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    if command == "index":
        pytest.importorskip("pyarrow")
    assert main([command, str(folder), *(["--verbose"] if command == "scan" else [])]) == 0
    out = capsys.readouterr().out
    assert out.count("· not judged") + out.count("more files not judged") * 2 >= min(len(SKIPPED), 6)
    if command == "scan":
        assert all(name in out for name in SKIPPED)


@pytest.mark.parametrize("name", ["pipe.jsonl", "zero_events.jsonl", "self.jsonl", "gone.csv"])
def test_one_that_is_named_is_refused_with_the_reason(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(folder / name)]) == 2
    assert SKIPPED[name] in capsys.readouterr().err


def test_a_pipe_among_the_files_of_a_store_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "mlruns" / "0" / "abc"
    (run / "metrics").mkdir(parents=True)
    (run.parent / "meta.yaml").write_text("experiment_id: '0'\nname: x\n")
    (run / "meta.yaml").write_text("run_id: abc\nrun_uuid: abc\nstart_time: 1\nlifecycle_stage: active\n")
    for name in ("loss", "reward"):
        (run / "metrics" / name).write_text("".join(f"{n} 0.{n} {n}\n" for n in range(1, 40)))
    os.mkfifo(run / "metrics" / "kl")
    os.mkfifo(tmp_path / "mlruns" / "0" / "pipe")
    assert main(["scan", str(tmp_path / "mlruns"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["adapter"] for one in found["runs"]] == ["mlflow"]
    assert listed(found["passed_over"]).keys() == {"kl", "pipe"}


def test_a_pipe_as_settings_beside_a_log_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(ROWS)
    (tmp_path / ".hydra").mkdir()
    for name in (".hydra/config.yaml", "config.yaml", "rldk_acks.json"):
        os.mkfifo(tmp_path / name)
    assert main(["scan", str(tmp_path / "run.jsonl")]) == 0


def scanned_by_another(folder: Path, output: Path) -> int:
    """The status of `rldk scan`, by a user who is not root, since root may read everything; its output goes to a file."""
    if os.geteuid() != 0:
        with output.open("w") as file, contextlib.redirect_stdout(file):
            return main(["scan", str(folder), "--json"])
    main(["scan", str(folder / "run.jsonl")])  # imports what the other user may not be able to
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 70
    try:
        with output.open("w") as file, contextlib.redirect_stdout(file):
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            status = main(["scan", str(folder), "--json"])
    finally:
        os._exit(status)


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """A folder that other users can reach, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="rldk-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_what_may_not_be_read_is_listed(readable_by_all: Path, tmp_path: Path) -> None:
    (readable_by_all / "run.jsonl").write_text(ROWS)
    (readable_by_all / "secret.jsonl").write_text(ROWS)
    (readable_by_all / "locked").mkdir()
    (readable_by_all / "locked" / "run.jsonl").write_text(ROWS)
    (readable_by_all / "secret.jsonl").chmod(0)
    (readable_by_all / "locked").chmod(0)
    assert scanned_by_another(readable_by_all, tmp_path / "out.json") == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert [Path(one["path"]).name for one in found["runs"]] == ["run.jsonl"]
    reasons = listed(found["passed_over"])
    assert reasons.keys() == {"secret.jsonl", "locked"}
    assert "may not be read by this user" in reasons["secret.jsonl"] and "Permission denied" in reasons["locked"]
    (readable_by_all / "locked").chmod(0o755)
