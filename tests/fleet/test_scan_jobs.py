"""`rldk scan --jobs`: the results of several processes are those of one, and a file that kills its reader is listed."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from rldk.cli.main import main
from rldk.core.errors import UsageError
from rldk.fleet import scan
from rldk.fleet.scan import choose_jobs, judge_many
from rldk.fleet.work import CURVE_CELLS, JudgedFile, Reading, judge_file, thinned
from rldk.ingest.read import LogFile
from rldk.runs.table import NUMBER, Column

Capture = pytest.CaptureFixture[str]


def output(capsys: Capture, *arguments: str) -> tuple[int, str]:
    status = main(["scan", *arguments])
    out, error = capsys.readouterr()
    assert error == ""
    return status, re.sub(r"[\d.]+ (?:ms|s) · next: ", "", out)  # the time it took


@pytest.mark.parametrize("options", [("--json",), (), ("--verbose",)])
def test_the_output_does_not_depend_on_the_number_of_processes(store: Path, capsys: Capture, options: tuple[str, ...]) -> None:
    one = output(capsys, str(store), "--jobs", "1", *options)
    assert one[0] == 1 and "entropy" in one[1]
    assert output(capsys, str(store), "--jobs", "2", *options) == one


def test_the_runs_of_one_name_are_told_apart(store: Path, capsys: Capture) -> None:
    _, out = output(capsys, str(store), "--jobs", "2", "--json")
    answer = json.loads(out)
    assert [run["run_id"] for run in answer["runs"]] == ["<b>d", "c", "a/run", "b/run"]
    assert [Path(row["path"]).name for row in answer["passed_over"]] == ["noise.bin", "settings.json"]


def test_the_beginning_of_another_run_is_left_out_by_either(tmp_path: Path, store: Path, capsys: Capture) -> None:
    lines = (store / "c.jsonl").read_bytes().splitlines(keepends=True)
    (store / "a_checkpoint.jsonl").write_bytes(b"".join(lines[:50]))
    (store / "longer.jsonl").write_bytes(b"".join(line.replace(b'"reward_mean":', b'"reward_std":', 1) for line in lines))
    one = output(capsys, str(store), "--jobs", "1", "--json")
    assert "its 50 steps are the beginning of" in one[1]
    assert output(capsys, str(store), "--jobs", "2", "--json") == one


def _kills(reading: Reading, log: LogFile) -> JudgedFile:
    if log.path.name == "c.jsonl":
        os.kill(os.getpid(), signal.SIGKILL)
    return judge_file(reading, log)


def test_a_file_that_kills_its_reader_is_listed_and_the_others_are_judged(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "judge_file", _kills)
    judged = judge_many([store], Reading(), jobs=2)
    assert [result.run.run_id for result in judged] == ["<b>d", "a/run", "b/run"]
    reasons = {path.name: reason for path, reason in judged.passed_over}
    assert "died 2 times (signal SIGKILL" in reasons["c.jsonl"]


def test_of_named_files_one_that_kills_its_reader_is_unread(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "judge_file", _kills)
    judged = judge_many([store / "c.jsonl", store / "a/run.jsonl"], Reading(), jobs=2)
    assert judged.unread == [store / "c.jsonl"] and judged.verdict == "healthy"


def _fails(reading: Reading, log: LogFile) -> JudgedFile:
    if log.path.name == "c.jsonl":
        raise TypeError("nobody expected this")
    return judge_file(reading, log)


def test_a_file_with_an_unexpected_error_is_listed_by_one_process_as_by_several(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "judge_file", _fails)
    monkeypatch.setattr(scan, "judge_whole", _fails)
    one, two = (judge_many([store], Reading(), jobs=jobs) for jobs in (1, 2))
    assert [result.run.run_id for result in one] == [result.run.run_id for result in two] == ["<b>d", "a/run", "b/run"]
    assert one.passed_over == two.passed_over
    reasons = {path.name: reason for path, reason in one.passed_over}
    assert reasons["c.jsonl"] == "could not be judged: unexpected TypeError: nobody expected this"
    named = judge_many([store / "c.jsonl", store / "a/run.jsonl"], Reading(), jobs=1)
    assert named.unread == [store / "c.jsonl"] and named.verdict == "healthy"


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_unknown_adapter_is_no_fault_of_a_file(store: Path, jobs: int) -> None:
    with pytest.raises(UsageError, match="Unknown adapter 'nonsense'"):
        judge_many([store], Reading(adapter_hint="nonsense"), jobs=jobs)


def test_a_few_small_files_need_no_processes(store: Path) -> None:
    logs = [LogFile(path) for path in sorted(store.rglob("*.jsonl"))]
    assert choose_jobs(logs) == 1
    assert choose_jobs(logs, 2) == 2
    assert choose_jobs(logs[:1], 8) == 1, "no more than there are files"
    with pytest.raises(UsageError, match="--jobs to be at least 1, got 0"):
        choose_jobs(logs, 0)


def test_many_bytes_are_worth_all_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "available_cores", lambda: 4)
    for name in "abc":
        with (tmp_path / name).open("wb") as file:
            file.truncate(4 << 20)
    assert choose_jobs([LogFile(tmp_path / name) for name in "abc"]) == 3
    assert choose_jobs([LogFile(tmp_path / "a")]) == 1


def test_a_long_curve_is_thinned_to_the_means_of_its_shares() -> None:
    values = np.arange(48_000.0)
    values[7] = np.nan
    thin = thinned(Column(values, np.full(len(values), NUMBER, dtype=np.uint8)))
    assert len(thin.values) == CURVE_CELLS
    assert (thin.values[0], thin.values[-1]) == (0.0, 47_999.0), "the first and the last number stay"
    assert thin.values[1] == pytest.approx(np.arange(100.0, 200.0).mean())


def test_one_process_keeps_only_heads_of_many_runs(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = judge_many([store], Reading(), jobs=1)
    monkeypatch.setattr(scan, "_FEW", 1)
    heads = judge_many([store], Reading(), jobs=1)
    assert [type(result.run).__name__ for result in heads] == ["RunHead"] * 4
    assert [result.to_dict() for result in heads] == [result.to_dict() for result in whole]
