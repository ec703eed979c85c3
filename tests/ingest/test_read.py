"""Reading paths, folders, globs and lists; what is hostile or broken gets a clear answer in bounded memory."""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from rldk.core.errors import ReadError, RLDKError, UsageError
from rldk.ingest import ingest_runs, read_runs
from rldk.ingest.adapter import Adapter
from rldk.ingest.choose import choose
from rldk.ingest.paths import size_of


def events(steps: range, run_id: str | None = None, **metrics: float) -> list[dict[str, Any]]:
    info = {} if run_id is None else {"model_info": {"run_id": run_id}}
    return [{"step": step, "metrics": {"loss": 1.0 / (step + 1), "kl": 0.01 * step, **metrics}, **info} for step in steps]


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


# What a path may be


def test_a_file_a_folder_a_glob_and_a_list(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "one.jsonl", events(range(5), reward=1.0)),
        write(tmp_path / "deep/two.jsonl", events(range(3), reward=2.0)),
    )
    assert len(ingest_runs(one)) == len(ingest_runs(str(one))) == 5
    for given in (
        tmp_path,
        str(tmp_path / "**" / "*.jsonl"),
        [one, str(two)],
        (path for path in (one, two)),
        [one, tmp_path / "deep"],
    ):
        frame = ingest_runs(given)
        assert frame.groupby("run_id")["reward_mean"].agg(["size", "mean"]).to_dict("index") == {
            "one": {"size": 5, "mean": 1.0}, "two": {"size": 3, "mean": 2.0},
        }  # fmt: skip


def test_a_path_given_twice_is_read_once(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", events(range(5)))
    assert len(ingest_runs([one, one, str(tmp_path / "*.jsonl")])) == 5


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    assert len(ingest_runs(write(tmp_path / "run[1].jsonl", events(range(4))))) == 4


def test_the_columns_are_those_of_the_contract(tmp_path: Path) -> None:
    row = {
        "step": 1,
        "wall_time": 2.0,
        "metrics": {"kl": 0.1, "mine": 1},
        "rng": {"seed": 1},
        "model_info": {"run_id": "a", "phase": "train"},
    }
    path = write(tmp_path / "log.jsonl", [row, {**row, "model_info": {"run_id": "b"}, "metrics": {"reward": 1.0}}])
    frame = ingest_runs(path)
    assert list(frame) == ["step", "wall_time", "kl_mean", "mine", "reward_mean", "run_id", "phase", "seed"]
    assert frame["run_id"].tolist() == ["a", "b"] and frame["phase"].tolist() == ["train", "train"]
    assert str(frame["step"].dtype) == "int64" and str(frame["kl_mean"].dtype) == "float64"


def test_runs_of_one_file_are_told_apart_by_run_id(tmp_path: Path) -> None:
    rows = [row for pair in zip(events(range(5), "a"), events(range(5), "b"), strict=True) for row in pair]
    result = read_runs(write(tmp_path / "log.jsonl", rows))
    assert [(run.run_id, run.steps.tolist()) for run in result.runs] == [("a", [0, 1, 2, 3, 4]), ("b", [0, 1, 2, 3, 4])]


def test_checkpoints_that_hold_the_beginning_of_a_longer_log_are_left_out(tmp_path: Path) -> None:
    for steps in (3, 6, 9):
        write(tmp_path / f"checkpoint-{steps}" / "trainer_state.json", [{"log_history": [
            {"step": n, "loss": 1.0 / n, "reward": 0.5, "kl": 0.1, "learning_rate": 1e-5,
            "epoch": 0.1} for n in range(1, steps + 1)]}])  # fmt: skip
    result = read_runs(tmp_path)
    assert [(run.run_id, len(run)) for run in result.runs] == [("checkpoint-9", 9)]
    assert [reason for _, reason in result.passed_over] == [
        f"its {n} steps are the beginning of {tmp_path / 'checkpoint-9' / 'trainer_state.json'}, which has 9" for n in (6, 3)
    ]


def test_a_run_of_a_file_with_several_is_named_where_it_is_a_copy(tmp_path: Path) -> None:
    second = [{"step": n, "loss": 2.0 / (n + 1), "reward": 0.01 * n} for n in range(9)]
    first = [{"step": n, "loss": 1.0 / (n + 1), "reward": 0.03 * n} for n in range(7)]
    two = write(tmp_path / "two.jsonl", [*first, *second])
    other = tmp_path / "a.jsonl"
    for steps, said in ((9, f"its run two#2 is a copy of {other}"), (5, f"its 5 steps are the beginning of two#2 of {two}")):
        write(tmp_path / "a.jsonl", second[:steps])
        result = read_runs(tmp_path)
        assert len(result.runs) == 2, steps
        ((_, reason),) = result.passed_over
        assert reason.startswith(said)
    write(tmp_path / "a.jsonl", [*second, {"step": 9, "loss": 0.1, "reward": 0.2}])
    ((path, reason),) = read_runs(tmp_path).passed_over
    assert path == two and reason == f"the 9 steps of its run two#2 are the beginning of {tmp_path / 'a.jsonl'}, which has 10"


@pytest.mark.parametrize("content", ["step,reward,kl\n", "step,reward,kl\n\n"])
def test_a_table_with_a_header_and_no_rows_says_so(tmp_path: Path, content: str) -> None:
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(RLDKError, match=r"log\.csv has no rows\.$"):
        read_runs(tmp_path / "log.csv")


def test_what_a_monitor_wrote_beside_its_log_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a_events.jsonl", events(range(6)))
    for name in ("a_alerts.json", "a_final_report.json", "a_comprehensive_analysis_step_3.json"):
        (tmp_path / name).write_text('{"verdict": "healthy"}')
    table = "step,loss\n" + "".join(f"{step},{0.5 * step}\n" for step in range(6))
    (tmp_path / "a_metrics.csv").write_text(table)
    (tmp_path / "b_metrics.csv").write_text(table)
    result = read_runs(tmp_path)
    assert [run.path.name for run in result.runs] == ["a_events.jsonl", "b_metrics.csv"], "b has no event log"
    assert not result.passed_over
    assert len(read_runs(tmp_path / "a_metrics.csv").runs) == 1, "asked for by name it is read"


def test_a_run_that_went_another_way_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", events(range(9)))
    rows = events(range(5))
    rows[-1]["metrics"]["loss"] = 7.0
    write(tmp_path / "b.jsonl", rows)
    assert len(read_runs(tmp_path).runs) == 2


def test_the_same_values_at_other_steps_are_another_run(tmp_path: Path) -> None:
    for name, stride in (("a", 1), ("b", 10)):
        write(tmp_path / f"{name}.jsonl", [{"step": stride * n, "metrics": {"loss": 0.5, "kl": 0.1}} for n in range(5)])
    assert sorted(run.run_id for run in read_runs(tmp_path).runs) == ["a", "b"]


def test_runs_of_one_name_are_named_by_their_folders(tmp_path: Path) -> None:
    for number, place in enumerate(("x/seed1/run.jsonl", "x/seed2/run.jsonl", "y/seed2/run.jsonl", "y/other.jsonl")):
        write(tmp_path / place, events(range(4 + number), offset=float(number)))
    names = [run.run_id for run in read_runs(tmp_path).runs]
    assert len(set(names)) == 4 and "other" in names and "seed1/run" in names
    assert {"x/seed2/run", "y/seed2/run"} <= set(names)


def test_runs_of_one_name_in_one_folder_are_numbered(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", events(range(4), "same", offset=1.0))
    write(tmp_path / "b.jsonl", events(range(5), "same", offset=2.0))
    write(tmp_path / "c.jsonl", events(range(6), "same~2", offset=3.0))
    names = [run.run_id for run in read_runs(tmp_path).runs]
    assert len(set(names)) == 3 and "same~2" in names


# An account of what was not read


def test_malformed_lines_are_counted_with_their_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = events(range(10))
    rows[3:3] = [b"{torn", b"\xff\xfe not text", {"step": "x", "metrics": {}}]
    path = write(tmp_path / "log.jsonl", rows)
    report = read_runs(path).files[0]
    assert report.problems.total == 3 and [line for line, _ in report.problems.skipped] == [4, 5, 6]
    with caplog.at_level(logging.WARNING, logger="rldk"):
        assert len(ingest_runs(path)) == 10
    assert "3 lines skipped (line 4: not JSON" in caplog.text and str(path) in caplog.text


def test_a_torn_last_line_is_said_to_be_one(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", events(range(10)))
    path.write_bytes(path.read_bytes()[:-10])
    problems = read_runs(path).files[0].problems
    assert problems.torn and problems.skipped[0][0] == 10


def test_an_unknown_schema_is_said_with_the_field_map_that_helps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "log.jsonl", [{"step": n, "reward": 1.0, "my_special": 2.0} for n in range(5)])
    with caplog.at_level(logging.WARNING, logger="rldk"):
        frame = ingest_runs(path, adapter_hint="flexible")
    assert "my_special" in frame and "--field-map" in caplog.text and "my_special" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="rldk"):
        assert "kl_mean" in ingest_runs(path, adapter_hint="flexible", field_map={"my_special": "kl_mean"})
    assert caplog.text == ""


def test_a_folder_of_junk_gives_what_can_be_read_and_says_the_rest(tmp_path: Path) -> None:
    write(tmp_path / "good.jsonl", events(range(5)))
    (tmp_path / "readme.md").write_text("# Hello\n\nSome words.\n")
    (tmp_path / "weights.bin").write_bytes(os.urandom(5000))
    (tmp_path / "empty.log").touch()
    (tmp_path / "config.json").write_text('{"learning_rate": 1e-5, "model": "x"}')
    (tmp_path / ".hidden.jsonl").write_text("{}\n")
    write(tmp_path / "__pycache__" / "x.jsonl", events(range(3)))
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.jsonl")
    result = read_runs(tmp_path)
    assert [(run.run_id, run.config.raw["learning_rate"]) for run in result.runs] == [("good", 1e-5)]
    assert {path.name for path, _ in result.passed_over} == {"weights.bin", "empty.log", "broken", "pipe.jsonl"}
    assert all(reason and str(tmp_path) not in reason for _, reason in result.passed_over)


# What cannot be read


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path / "missing.jsonl", "does not exist"),
        (lambda path: path / "*.jsonl", "Nothing matches"),
        (lambda path: "~nobody-has-this-name/x.jsonl", "cannot be read"),
        (lambda path: "x" * 5000, "cannot be read: File name too long"),
        (lambda path: "a\0b", "does not exist"),
        (lambda path: [], "No path was given"),
    ],
)  # fmt: skip
def test_a_path_that_is_none(make: Callable[[Path], Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=said):
        ingest_runs(make(tmp_path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n\n", "rldk cannot read|has no row"),
        (os.urandom(4096).replace(b"\x1f\x8b", b""), "binary file"),
        (b"\x00" * 5000, "binary file"),
        (b"hello\nworld\n", "rldk cannot read"),
        (b'{"step": 1, "metrics": {}}\n', "has no row with a metric"),
        (b'{"foo": 1}\n{"foo": 2}\n', "--field-map"),
        (b"[" * 100_000, "rldk cannot read|cut off"),
        (b'{"a":' * 100_000, "rldk cannot read|cut off"),
        (b"\x1f\x8b\x08\x00 not gzip after all", "rldk cannot read|is empty|damaged"),
        (b"\xff\xfes\x00t\x00e\x00p\x00", "rldk cannot read .*: no rows"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_log(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=said) as error:
        read_runs(path)
    assert len(str(error.value)) < 600 + len(str(path)) and str(path) in str(error.value)


def test_a_folder_without_logs(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="holds no file that may be a log"):
        ingest_runs(tmp_path)
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(ReadError, match=r"No run could be read.*note\.txt"):
        ingest_runs(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ReadError, match="is a pipe"):
        ingest_runs(tmp_path / "pipe")


def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(ReadError, match="device"):
        ingest_runs("/dev/zero")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", events(range(3)))
    path.chmod(0)
    with pytest.raises(ReadError, match="may not be read"):
        ingest_runs(path)


def test_a_folder_that_may_not_be_looked_into_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log.jsonl", events(range(3)))
    hidden = write(tmp_path / "other.jsonl", events(range(3)))
    real = os.stat

    def refused(path: Any, *more: Any, **named: Any) -> os.stat_result:
        if Path(path) == hidden:
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **named)

    monkeypatch.setattr(os, "stat", refused)
    assert len(read_runs(tmp_path).runs) == 1
    assert size_of([tmp_path]) == (tmp_path / "log.jsonl").stat().st_size


def test_a_long_first_line_does_not_hide_the_rows_after_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.write(b'{"step": 0, "x": "' + b"a" * (18 << 20) + b'"}\n')
        file.writelines(json.dumps(row).encode() + b"\n" for row in events(range(1, 30)))
    result = read_runs(path)
    assert [len(run) for run in result.runs] == [29]
    assert [line for line, _ in result.files[0].problems.skipped] == [1]


def test_one_long_line_and_no_other_is_read_as_what_it_is(tmp_path: Path) -> None:
    rows = [{"step": n, "loss": 1.0, "kl": 0.1, "reward": 0.5, "note": "a" * 1000} for n in range(9000)]
    text = json.dumps({"log_history": rows, "global_step": 8999})
    path = tmp_path / "state.json"
    path.write_text(text + "\n")
    assert len(text) > 8 << 20
    assert [len(run) for run in read_runs(path).runs] == [9000]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_text_of_the_windows_shell_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(("\ufeff" + "\r\n".join(map(json.dumps, events(range(40)))) + "\r\n").encode(encoding))
    (run,) = read_runs(path).runs
    assert run.steps.tolist() == list(range(40))


def test_a_compressed_file_that_ends_before_its_first_row_is_not_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(zstandard.compress(write(tmp_path / "log.jsonl", events(range(300))).read_bytes())[:200])
    with pytest.raises(ReadError, match="holds nothing that can be read: the compressed data ends too early"):
        read_runs(path)


def test_hints_and_field_maps_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", events(range(3)))
    with pytest.raises(UsageError, match=r"Unknown adapter 'trll'\. Did you mean trl.*\? Available: tensorboard, .*"):
        ingest_runs(path, adapter_hint="trll")
    (tmp_path / "poem.txt").write_text("Nothing here\nis a number.\n")
    with pytest.raises(ReadError, match="cannot be read by the adapter 'verl'"):
        ingest_runs(tmp_path / "poem.txt", adapter_hint="verl")
    with pytest.raises(UsageError, match="Did you mean kl_mean"):
        ingest_runs(path, field_map={"x": "kl_meen"})
    assert len(ingest_runs(path, adapter_hint="trl")) == 3


def test_invalid_utf8_and_odd_text_do_not_stop_the_reading(tmp_path: Path) -> None:
    rows = [b'{"step": %d, "metrics": {"loss": 1.5, "caf\xe9": 2, "\\ud800": 3, "\xc3\xa9": 4}}' % n for n in range(5)]
    frame = ingest_runs(write(tmp_path / "log.jsonl", rows))
    assert list(frame) == ["step", "wall_time", "loss", "caf�", "?", "é", "run_id", "phase"]
    frame.to_csv(tmp_path / "out.csv")


def test_deep_nesting_is_one_bad_line(tmp_path: Path) -> None:
    rows = events(range(5))
    rows[2:2] = [b'{"step": 9, "metrics": {"loss": ' + b"[" * 100_000 + b"}}", b'{"a":' * 100_000]
    result = read_runs(write(tmp_path / "log.jsonl", rows))
    assert len(result.runs[0]) == 5 and result.files[0].problems.total == 2


MEASURE = """
import json, sys, time
from rldk.core.errors import RLDKError
from rldk.ingest import read_runs
import pandas, numpy

def peak():  # not getrusage: it begins with what the parent had
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

before = peak()
begun = time.process_time()
try:
    result = read_runs(sys.argv[1])
    rows, said = len(result.runs[0]), result.runs[0].notes + [reason for _, reason in result.files[0].problems.skipped]
    result.frame()
except RLDKError as error:
    rows, said = 0, [str(error)]
used = peak() - before
print(json.dumps({"rows": rows, "said": said, "megabytes": used / 1024, "seconds": time.process_time() - begun}))
"""


def measure(path: Path) -> dict[str, Any]:
    """Read a file in a process of its own; at most 4 GiB, so that a mistake does not take the machine with it."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, timeout=300, preexec_fn=limit, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_line_of_100_megabytes_among_others(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.write(b"".join(json.dumps(row).encode() + b"\n" for row in events(range(50))))
        file.write(b'{"step": 50, "metrics": {"loss": 1.0}, "text": "')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n')
        file.write(b"".join(json.dumps(row).encode() + b"\n" for row in events(range(51, 100))))
    answer = measure(path)
    assert answer["rows"] == 99 and any("longer than" in said for said in answer["said"])
    assert answer["megabytes"] < 120


@pytest.mark.parametrize("start", [b'{"step": 1, "metrics": {"loss": 1.0}, "text": "', b"["])
def test_a_file_of_one_line_of_100_megabytes(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.write(start)
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    answer = measure(path)
    assert answer["rows"] == 0 and len(answer["said"]) == 1
    assert answer["megabytes"] < 450


def test_three_hundred_thousand_distinct_keys(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        for step in range(3_000):
            keys = ",".join(f'"key_{step * 100 + n}":{n}' for n in range(100))
            file.write(f'{{"step":{step},"metrics":{{"loss":0.5,{keys}}}}}\n'.encode())
    answer = measure(path)
    assert answer["rows"] == 3_000 and any("keys; at least" in said for said in answer["said"])
    assert answer["megabytes"] < 300
    assert answer["seconds"] < 60


def test_a_row_of_a_hundred_thousand_keys(tmp_path: Path) -> None:
    keys = ",".join(f'"key_{n}":{n}' for n in range(100_000))
    path = write(tmp_path / "log.jsonl", [f'{{"step":{step},"metrics":{{"loss":0.5,{keys}}}}}'.encode() for step in range(3)])
    answer = measure(path)
    assert answer["rows"] == 3 and answer["megabytes"] < 300


def test_every_error_is_one_of_ours() -> None:
    assert issubclass(ReadError, RLDKError) and issubclass(UsageError, RLDKError) and issubclass(UsageError, ValueError)


def test_a_new_key_in_each_row_is_bounded_and_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {n}, "loss": 0.5, "reward": {n}, "key_{n}": {n}}}\n' for n in range(6000)))
    result = read_runs(path)
    (run,) = result.runs
    assert len(run) == 6000 and len(run.columns) < 1700 and {"loss", "reward_mean"} <= run.columns.keys()
    assert any("left out" in note for note in run.notes)


def test_a_table_that_would_fill_the_memory_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adapter, "max_rows", 3000)
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": {n}, "loss": 0.5, "reward": {n}, "k{n % 7}": {n}}}\n' for n in range(9000)))
    (run,) = read_runs(path).runs
    assert 3000 <= len(run) < 9000 and any("too large" in note for note in run.notes)


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and links")
def test_loops_pipes_and_devices_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("".join(f'{{"step": {n}, "loss": 0.5, "reward": {n}}}\n' for n in range(30)))
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert [run.path.name for run in read_runs(tmp_path).runs] == ["run.jsonl"]
    for name, why in (("zero.jsonl", "device"), ("pipe.jsonl", "pipe"), ("self.jsonl", "leads in a circle")):
        with pytest.raises(RLDKError, match=why):
            read_runs(tmp_path / name)


def test_a_note_that_repeats_is_given_once(tmp_path: Path) -> None:
    adapter = choose(write(tmp_path / "one.jsonl", events(range(5))))
    adapter.notes += ["a value was left out", "another note", "a value was left out"]
    (run,) = adapter.runs()
    assert run.notes[:2] == ["a value was left out (2 times)", "another note"]
