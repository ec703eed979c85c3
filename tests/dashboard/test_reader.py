"""What the reader answers: about runs that grow, begin again, are damaged, or are no event logs at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.dashboard.open_log import sketch
from rldk.dashboard.reader_process import RunReader
from rldk.ingest import read_runs
from rldk.judge.scan import judge_run

from .conftest import settle, work_until, write

KEY = "run_events.jsonl"


def test_a_run_is_read_judged_and_judged_as_the_scan_does(reader: RunReader, tmp_path: Path, sick_events: list[Event]) -> None:
    path = write(tmp_path / KEY, sick_events)
    state = settle(reader, KEY)
    judged = judge_run(read_runs(path).runs[0])
    assert state["rows"] == state["judged"] == len(sick_events)
    assert state["verdict"] == judged.verdict == "critical"
    told = [(anomaly["type"], anomaly["index"]) for anomaly in state["anomalies"]]  # type: ignore[attr-defined]
    assert told == [(anomaly.type, anomaly.index) for anomaly in judged.engine.anomalies]
    assert [one["cause"] for one in state["incidents"]] == [one.cause for one in judged.incidents]  # type: ignore[attr-defined]


def test_a_growing_log_is_followed_and_no_line_is_read_twice(
    reader: RunReader, tmp_path: Path, healthy_events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    from rldk.log.tail import GrowingFile

    take = GrowingFile._take
    monkeypatch.setattr(GrowingFile, "_take", lambda self, data: read.append(len(data)) or take(self, data))
    path = write(tmp_path / KEY, healthy_events[:100])
    assert settle(reader, KEY)["rows"] == 100
    write(path, healthy_events[100:101])
    work_until(reader, lambda: reader.state(KEY)["judged"] == 101)
    assert reader.state(KEY)["last_step"] == healthy_events[100].step
    assert sum(read) == 2 * path.stat().st_size  # once for the picture, once for the judge


def test_a_half_line_waits_for_its_end(reader: RunReader, tmp_path: Path) -> None:
    path = write(tmp_path / KEY, [Event(1, {"reward_mean": 1.0})])
    with path.open("ab") as file:
        file.write(b'{"step": 2, "metrics": {"reward_m')
    assert settle(reader, KEY)["rows"] == 1
    with path.open("ab") as file:
        file.write(b'ean": 2.0}}\n')
    work_until(reader, lambda: reader.state(KEY)["rows"] == 2)


def test_a_log_that_is_cut_or_replaced_begins_again(reader: RunReader, tmp_path: Path) -> None:
    path = write(tmp_path / KEY, [Event(n, {"reward_mean": 1.0}) for n in range(50)])
    assert settle(reader, KEY)["rows"] == 50
    write(path, [Event(n, {"reward_mean": 5.0}) for n in range(7)], "wb")
    work_until(reader, lambda: reader.state(KEY).get("judged") == 7)
    other = write(tmp_path / "new", [Event(n, {"reward_mean": 9.0}) for n in range(9)])
    other.replace(path)
    work_until(reader, lambda: reader.state(KEY).get("judged") == 9)
    found = reader.points(KEY, None, ["reward_mean"], 100, None)
    assert found["ys"][0].tolist() == [9.0] * 9
    assert reader.state(KEY)["restarts"] == 2


def test_runs_in_one_file_are_told_apart(reader: RunReader, tmp_path: Path) -> None:
    events = [Event(n, {"reward_mean": float(n)}, model_info={"run_id": "ab"[n % 2]}) for n in range(40)]
    write(tmp_path / KEY, events)
    settle(reader, KEY)
    work_until(reader, lambda: all(reader.state(KEY, name)["judged"] == 20 for name in "ab"))
    assert {name for name, _ in reader.state(KEY)["runs"]} == {"a", "b"}
    assert reader.points(KEY, "a", ["reward_mean"], 100, None)["x"].tolist() == list(range(0, 40, 2))


def test_zooming_in_brings_the_detail_back(reader: RunReader, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000)
    values[1234] = 99.0
    write(tmp_path / KEY, [Event(n, {"reward_mean": float(value)}) for n, value in enumerate(values)])
    settle(reader, KEY)
    whole = reader.points(KEY, None, ["reward_mean"], 100, None)
    assert len(whole["x"]) <= 400 and 99.0 in whole["ys"][0]
    near = reader.points(KEY, None, ["reward_mean"], 100, [1200.0, 1260.0])
    assert near["x"].tolist() == list(range(1200, 1261))
    assert near["ys"][0].tolist() == values[1200:1261].tolist()


def test_other_logs_are_read_whole_and_again_when_they_change(reader: RunReader, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,reward_mean,kl_mean\n" + "".join(f"{n},{n / 10},0.01\n" for n in range(30)))
    assert settle(reader, "metrics.csv")["rows"] == 30
    with path.open("a") as file:
        file.write("30,3.0,0.01\n")
    work_until(reader, lambda: reader.state("metrics.csv")["rows"] == 31)


def test_json_lines_of_another_framework_are_no_events_and_still_a_run(reader: RunReader, tmp_path: Path) -> None:
    lines = [json.dumps({"step": n, "reward": n / 10, "kl": 0.01, "loss": 0.5}) for n in range(30)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    state = settle(reader, "log.jsonl")
    assert state["rows"] == 30 and "reward_mean" in state["drawn"]  # type: ignore[operator]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"not json\n", b'{"step": 1}\n', b"\x00\xff" * 50, b"[1, 2]\n", b'{"step"'])
def test_a_file_that_is_no_run_is_a_sentence(reader: RunReader, tmp_path: Path, content: bytes) -> None:
    (tmp_path / KEY).write_bytes(content)
    reader.state(KEY)
    for _ in range(200):
        reader.work()
    state = reader.state(KEY)
    assert not state.get("rows")
    assert isinstance(state["problem"], str) and isinstance(state["skipped"], str)


def test_a_run_that_is_gone_or_never_was_is_a_sentence(reader: RunReader, tmp_path: Path) -> None:
    for key in ("none.jsonl", "../x", "\0", "x" * 10_000):
        assert "problem" in reader.answer("state", {"key": key, "run": None})
    path = write(tmp_path / KEY, [Event(1, {"reward_mean": 1.0})])
    settle(reader, KEY)
    path.unlink()
    assert "no longer" in reader.answer("state", {"key": KEY, "run": None})["problem"]


def test_hostile_text_is_cut_and_cleaned(reader: RunReader, tmp_path: Path) -> None:
    event = Event(1, {"reward_mean": 1.0}, model_info={"run_id": "\x1b[31m" + "x" * 1_000_000}, notes=["\x1b[2Jn" * 100_000])
    event.extra["samples"] = [{"prompt": "p" * 1_000_000, "completion": "c"}, {"length": 3, "reward": 1.0}, "plain", 5]
    write(tmp_path / KEY, [event])
    state = settle(reader, KEY)
    assert len(str(state["run_id"])) <= 300 and "\x1b" not in str(state["run_id"])
    assert all(len(note) <= 2000 and "\x1b" not in note for _, note in state["notes"])  # type: ignore[attr-defined]
    found = reader.samples(KEY, None, 0, 10, "")
    assert [len(sample["prompt"]) for sample in found["samples"]] == [0, 4000]
    assert reader.samples(KEY, None, 0, 10, "PLAIN")["total"] == 1


def test_checkpoints_and_alerts_are_read_from_beside_the_log(reader: RunReader, tmp_path: Path) -> None:
    write(tmp_path / KEY, [Event(1, {"reward_mean": 1.0})])
    assert reader.checkpoints(KEY) == {"rows": []}
    (tmp_path / "run_checkpoint_summary.csv").write_text("step,health\n10,0.9\n20\n")
    assert reader.checkpoints(KEY) == {"rows": [{"step": "10", "health": "0.9"}, {"step": "20", "health": ""}]}
    (tmp_path / "run_alerts.json").write_text('[{"step": 3, "message": "kl <b>"}, 7]')
    assert reader.alerts(KEY)["alerts"] == [{"step": 3, "message": "kl <b>"}]
    (tmp_path / "run_alerts.json").write_text('[{"step": 3')
    assert "half written" in reader.alerts(KEY)["problem"]


def test_few_runs_stay_open(reader: RunReader, tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / f"{number}_events.jsonl", [Event(1, {"reward_mean": 1.0})])
        reader.state(f"{number}_events.jsonl")
    assert len(reader._open) == 8


def test_rows_for_export_are_those_of_the_log(reader: RunReader, tmp_path: Path) -> None:
    write(tmp_path / KEY, [Event(n, {"loss": n / 3} if n % 2 else {}, wall_time=float(n)) for n in range(10)])
    settle(reader, KEY)
    found = reader.rows(KEY, None, [2.0, 5.0])
    assert found["columns"]["step"].tolist() == [2, 3, 4, 5] and found["rows"] == 4
    assert found["columns"]["loss"].tolist()[1] == 1.0 and np.isnan(found["columns"]["loss"][0])


def test_a_large_log_is_sketched_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / KEY, [Event(n, {"kl": float(n)}) for n in range(5000)])
    assert sketch(path) == []
    monkeypatch.setattr("rldk.dashboard.open_log._SKETCHED_FROM", 1000)
    monkeypatch.setattr("rldk.dashboard.open_log._SKETCH_BYTES", 500)
    steps = [event.step for event in sketch(path)]
    assert steps[0] == 0 and steps[-1] > 4900 and len(set(steps)) > 300
    assert sketch(path)[0].metrics == {"kl_mean": 0.0}


def test_a_very_long_run_stays_in_bounded_memory_and_keeps_its_extremes(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rldk.dashboard.shown_run._MAX_VALUES", 6000)
    monkeypatch.setattr("rldk.dashboard.shown_run._BUCKET", 64)
    monkeypatch.setattr("rldk.dashboard.open_log.OpenLog._judge_new", lambda self: False)
    values = np.random.default_rng(1).normal(size=20_000)
    values[777], values[15_000] = 50.0, -60.0
    events = [Event(n, {"reward_mean": float(v), "reward_std": 1.0 + n % 5}) for n, v in enumerate(values)]
    events[9_999].metrics["reward_mean"] = float("nan")
    write(tmp_path / KEY, events)
    reader.state(KEY)
    work_until(reader, lambda: reader.state(KEY)["progress"] == 1.0)
    state = reader.state(KEY)
    assert state["rows"] == 20_000 and state["kept"] < 4_000
    found = reader.points(KEY, None, ["reward_mean", "reward_mean-std"], 5_000, None)
    assert np.nanmin(found["ys"][0]) == -60.0
    assert np.nanmax(found["ys"][0]) == 50.0 and np.isnan(found["ys"][0]).any()
    assert np.nanmin(found["ys"][1]) == -60.0 - (1.0 + 15_000 % 5)
    assert found["x"][-1] == 19_999
