"""Files that nobody thought of: one run that cannot be shown is shown as such, and the others live."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.dashboard.client import Client, RemoteRun
from rldk.dashboard.folder import Folder
from rldk.dashboard.open_log import OpenLog
from rldk.dashboard.processes import encoded
from rldk.dashboard.reader_process import RunReader
from rldk.dashboard.shown_run import ShownRun
from rldk.dashboard.workbench.process import Workbench

from .conftest import settle, work_until, write

GOOD = "good_events.jsonl"
HUGE = "9" * 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    events = [Event(n, {"reward_mean": n / 10, "kl_mean": 0.01}) for n in range(30)]
    write(runs / GOOD, events)
    if sys.platform == "linux":  # where a name may be any bytes
        write(Path(os.fsdecode(os.fsencode(runs) + b"/\xff\xfe_events.jsonl")), events)
        deep = Path(os.fsdecode(os.fsencode(runs) + b"/\x80"))
        deep.mkdir()
        (deep / "m.csv").write_text("step,reward_mean\n" + "".join(f"{n},{n}\n" for n in range(20)))
        os.mkfifo(runs / "pipe.jsonl")
        (runs / "self.jsonl").symlink_to("self.jsonl")
    halves = []
    for n in range(30):
        halves.append({"step": n, "metrics": {"reward_mean": 0.1, "my\ud800key": n / 2}, "notes": ["\ud83d"],
                       "model_info": {"run_id": "half\udfff"}, "samples": [{"prompt": "\ud800", "completion": "b"}]})  # fmt: skip
    (runs / "half_events.jsonl").write_text("\n".join(json.dumps(line) for line in halves) + "\n")
    steps = [2**63 - 1, 2**63, 10**30, -(2**63) - 1, 5, 6]
    lines = [f'{{"step": {step}, "metrics": {{"reward_mean": 0.5, "kl_mean": {HUGE}}}}}' for step in steps]
    (runs / "steps_events.jsonl").write_text("\n".join(lines) + "\n")
    write(runs / "numbers_events.jsonl", events)
    (runs / "numbers_alerts.json").write_text(f'[{{"step": {HUGE}, "value": -{HUGE}, "message": "\\ud800", "a": [{HUGE}]}}]')
    (runs / "numbers_checkpoint_summary.csv").write_text(f"step,{'x' * 200_000}\n{HUGE},\"{'y' * 200_000}\n")
    return runs


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    made = Client(folder)
    yield made
    made.close()


def shown(client: Client, key: str) -> dict[str, Any]:
    """The state of a run once it is read, from the same process as all others."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        state = client.ask("state", key=key)
        if state.get("problem") or (state.get("rows") and state["rows"] == state.get("judged")):
            return state
        time.sleep(0.02)
    raise AssertionError(f"{key} was not read")


def test_the_list_has_names_that_are_not_utf8_and_what_was_skipped(client: Client) -> None:
    listing = client.ask("list")
    keys = {key for key, *_ in listing["files"]}
    expected = {GOOD, "half_events.jsonl", "steps_events.jsonl", "numbers_events.jsonl"}
    if sys.platform == "linux":
        expected |= {"\\udcff\\udcfe_events.jsonl", "\\udc80/m.csv"}
        assert {name: why.split(",")[0] for name, why in listing["skipped"]} == {
            "pipe.jsonl": "is a pipe", "self.jsonl": "is a link that leads in a circle.",
        }  # fmt: skip
    assert keys == expected


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8")
@pytest.mark.parametrize(("key", "rows"), [("\\udcff\\udcfe_events.jsonl", 30), ("\\udc80/m.csv", 20)])
def test_a_run_whose_name_is_not_utf8_is_shown(client: Client, key: str, rows: int) -> None:
    pid = client.pid
    state = shown(client, key)
    assert state["rows"] == rows and not state["problem"]
    x, _ = RemoteRun(client, key, state["key_of_run"], state["drawn"], "r").points(["reward_mean"], 100)
    assert len(x) == rows and client.pid == pid


def test_half_a_surrogate_pair_in_keys_ids_and_samples_is_shown_escaped(client: Client) -> None:
    key, pid = "half_events.jsonl", client.pid
    state = shown(client, key)
    assert state["key_of_run"] == "half\\udfff" and state["rows"] == 30
    assert "my\\ud800key" in state["drawn"]
    run = RemoteRun(client, key, state["key_of_run"], state["drawn"], "r")
    _, (y,) = run.points(["my\\ud800key"], 100)
    assert y.tolist() == [n / 2 for n in range(30)]
    assert client.ask("samples", key=key, run=state["key_of_run"], start=0, count=5, words="")["total"] == 30
    assert client.ask("rows", key=key, run=state["key_of_run"])["rows"] == 30
    assert client.pid == pid


def test_steps_beyond_64_bits_are_skipped_with_the_reason(client: Client) -> None:
    state = shown(client, "steps_events.jsonl")
    assert state["rows"] == 3 and state["last_step"] == 6
    assert "line 2" in state["skipped"]


def test_huge_numbers_in_the_files_beside_a_run_are_infinite(client: Client) -> None:
    pid = client.pid
    (alert,) = client.ask("alerts", key="numbers_events.jsonl")["alerts"]
    assert alert["step"] == math.inf and alert["value"] == -math.inf and len(alert["a"]) <= 500
    table = client.ask("checkpoints", key="numbers_events.jsonl")
    assert table.get("problem") or len(table["rows"][0]) == 2
    assert shown(client, GOOD)["rows"] == 30 and client.pid == pid


def test_the_table_of_runs_has_all_of_them_and_what_was_skipped(folder: Path) -> None:
    bench = Workbench(Folder(folder))
    work_until(bench, lambda: not bench.answer("table", {})["waiting"])  # type: ignore[arg-type]
    found = bench.answer("table", {})
    keys = {row["key"] for row in found["rows"]}
    assert keys >= {GOOD, "half_events.jsonl", "steps_events.jsonl", "numbers_events.jsonl"}
    assert encoded(found)  # as it is sent
    if sys.platform == "linux":
        assert {"\\udcff\\udcfe_events.jsonl", "\\udc80/m.csv"} <= keys
        assert {name for name, _ in found["skipped"]} == {"pipe.jsonl", "self.jsonl"}


def test_a_run_that_fails_is_a_sentence_and_the_others_live(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("bad_events.jsonl", GOOD):
        write(tmp_path / name, [Event(n, {"reward_mean": 1.0}) for n in range(50)])
    draw = ShownRun.draw

    def fail(self: ShownRun, events: list[Event]) -> None:
        if self.run_id == "bad":
            raise KeyError("nobody thought of this")
        draw(self, events)

    monkeypatch.setattr(ShownRun, "draw", fail)
    assert "KeyError" in str(settle(reader, "bad_events.jsonl")["problem"])
    assert settle(reader, GOOD)["rows"] == 50 and not reader.state(GOOD)["problem"]
    assert [log.key for log in reader.folder.list().logs if log.key == "bad_events.jsonl"]
    for _ in range(20):
        reader.work()
    assert len([one for one in caplog.records if one.exc_info]) == 1  # said once


def test_an_answer_that_fails_is_a_sentence(reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / GOOD, [Event(1, {"reward_mean": 1.0})])
    settle(reader, GOOD)
    monkeypatch.setattr(ShownRun, "state", lambda self: 1 / 0)
    assert "ZeroDivisionError" in reader.answer("state", {"key": GOOD})["problem"]
    assert reader.answer("list", {})["files"]


def test_a_log_that_failed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.dashboard.open_log._PAUSE_AFTER_FAILURE", 0.0)
    log = OpenLog(write(tmp_path / GOOD, [Event(n, {"reward_mean": 1.0}) for n in range(5)]))
    calls: list[int] = []
    real = OpenLog._work

    def once(self: OpenLog, now: float) -> bool:
        calls.append(1)
        if len(calls) == 1:
            raise OSError(5, "Input/output error")
        return real(self, now)

    monkeypatch.setattr(OpenLog, "_work", once)
    reader = type("Reader", (), {"work": staticmethod(log.work)})()
    work_until(reader, lambda: bool(log.runs) and next(iter(log.runs.values())).events == 5)  # type: ignore[arg-type]
    assert log.problem == ""
    log.close()
