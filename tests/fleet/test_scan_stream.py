"""`rldk scan` tells of each run as soon as it is judged: a line of JSON for programs, running counts for a terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main
from rldk.fleet import scan
from rldk.fleet.scan import judge_many
from rldk.fleet.work import JudgedFile, Reading, judge_file
from rldk.ingest.read import LogFile

from .test_scan_jobs import _kills

Capture = pytest.CaptureFixture[str]


def lines(capsys: Capture, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    status = main(["scan", *arguments])
    out, error = capsys.readouterr()
    assert error == ""
    return status, [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_each_run_is_a_line_and_the_last_line_is_the_summary(store: Path, capsys: Capture, jobs: str) -> None:
    main(["scan", str(store), "--json"])
    whole = json.loads(capsys.readouterr().out)
    status, (*runs, last) = lines(capsys, str(store), "--json-lines", "--jobs", jobs)
    assert status == 1

    def without_name(run: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in run.items() if key != "run_id"}

    def by_path(run: dict[str, Any]) -> str:
        return str(run["path"])

    assert sorted(map(without_name, runs), key=by_path) == sorted(map(without_name, whole["runs"]), key=by_path)
    assert last["summary"] == {"runs": 4, "verdicts": {"critical": 1, "healthy": 3}, "passed_over": whole["passed_over"]}


def test_a_run_is_told_of_before_the_next_file_is_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    def work(reading: Reading, log: LogFile) -> JudgedFile:
        happened.append("read")
        return judge_file(reading, log)

    monkeypatch.setattr(scan, "judge_file", work)
    paths = sorted(store.rglob("*.jsonl"))
    judged = judge_many(paths, Reading(), jobs=1, on_result=lambda result: happened.append("told"))
    assert happened == ["read", "told"] * 4 and len(judged) == 4


def test_a_file_that_kills_its_reader_is_in_the_summary(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(scan, "judge_file", _kills)
    _, (*runs, last) = lines(capsys, str(store), "--json-lines", "--jobs", "2")
    assert len(runs) == 3 and last["summary"]["runs"] == 3
    reasons = {Path(row["path"]).name: row["reason"] for row in last["summary"]["passed_over"]}
    assert "died 2 times (signal SIGKILL" in reasons["c.jsonl"]


def test_the_beginning_of_a_longer_run_is_named_at_the_end(store: Path, capsys: Capture) -> None:
    content = (store / "c.jsonl").read_bytes().splitlines(keepends=True)
    (store / "a_checkpoint.jsonl").write_bytes(b"".join(content[:50]))
    _, (*runs, last) = lines(capsys, str(store), "--json-lines")
    assert len(runs) == 5 and last["summary"]["runs"] == 4
    assert any(row["path"].endswith("a_checkpoint.jsonl") for row in last["summary"]["passed_over"])


def test_both_forms_of_json_at_once_are_an_error(store: Path, capsys: Capture) -> None:
    assert main(["scan", str(store), "--json", "--json-lines"]) == 2
    assert "Expected --json or --json-lines, got both." in capsys.readouterr().err


def test_a_terminal_shows_counts_and_each_critical_run(store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("rldk.cli.progress._WORTH", 1)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["scan", str(store), "--jobs", "1", "--summary"]) == 1
    said = terminal.getvalue()
    assert "1 critical · 3 healthy" in said and "critical" in said and "  run: " in said
