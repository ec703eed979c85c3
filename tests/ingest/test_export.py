"""What was read, written again: whole or not at all, and the same when it is read back."""

from __future__ import annotations

import csv
import json
import math
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rldk.core.errors import LogWriteError, MissingDependencyError, UsageError
from rldk.ingest import Ingested, ingest_runs, read_runs
from rldk.ingest.export import check_output, write_runs


@pytest.fixture
def result(tmp_path: Path) -> Ingested:
    rows: list[dict[str, Any]] = []
    for run_id, reduction in (("ppo", "sequence"), ("grpo", "token")):
        info = {"run_id": run_id, "git_sha": "0123456", "phase": "train", "reductions": {"kl_mean": reduction}}
        for step in range(20):
            metrics = {"kl_mean": 0.1 * step, "reward_function_mean/acc": 1 / 3, "mine": step,
            "loss": math.nan if step == 7 else 1e-300, "reward": None}
            row = {"step": step, "wall_time": 1.7e9 + step, "metrics": metrics, "rng": {"seed": 3}, "model_info": info}
            rows.append({**row, "notes": ["a, \"quoted\" note\nof two lines"] if step == 5 else []})
    path = tmp_path / "in" / "log.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_runs(path)


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(left, right, check_exact=True, check_dtype=False)


def test_json_lines_are_read_back_the_same(result: Ingested, tmp_path: Path) -> None:
    write_runs(result, tmp_path / "out.jsonl")
    back = read_runs(tmp_path / "out.jsonl")
    same(back.frame(), result.frame())
    for one, other in zip(back.runs, result.runs, strict=True):
        assert one.coverage.reductions == other.coverage.reductions and one.coverage.unmapped == other.coverage.unmapped == [
            "mine"
        ]
        assert [event.nulls for event in one.events()] == [("reward_mean",)] * 20
        assert repr(list(one.events())) == repr(list(other.events()))
    assert [run.coverage.reductions["kl_mean"] for run in back.runs] == ["sequence", "token"]


def test_csv_is_read_back_the_same(result: Ingested, tmp_path: Path) -> None:
    write_runs(result, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frame = result.frame()
    assert list(rows[0]) == list(frame)
    for row, values in zip(rows, frame.to_dict("records"), strict=True):
        for name, value in values.items():
            assert row[name] == value if isinstance(value, str) else repr(float(row[name] or "nan")) == repr(float(value))
    again = ingest_runs(tmp_path / "out.csv")
    assert again.groupby("run_id", sort=False)["step"].size().to_dict() == {"ppo": 20, "grpo": 20}
    assert again["kl_mean"].tolist() == frame["kl_mean"].tolist()


@pytest.mark.full
def test_parquet_is_read_back_the_same(result: Ingested, tmp_path: Path) -> None:
    write_runs(result, tmp_path / "out.parquet")
    same(pd.read_parquet(tmp_path / "out.parquet"), result.frame())
    assert ingest_runs(tmp_path / "out.parquet")["kl_mean"].tolist() == result.frame()["kl_mean"].tolist()


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", pytest.param(".parquet", marks=pytest.mark.full)])
def test_odd_names_can_be_written(suffix: str, tmp_path: Path) -> None:
    rows = [
        b'{"step": %d, "metrics": {"loss": 1.5, "caf\xe9\\u0000\\ud800": 2, "a,\\"b\\n": 3}, "run_id": "\\udc00"}' % n
        for n in range(3)
    ]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(rows) + b"\n")
    write_runs(read_runs(path), tmp_path / f"out{suffix}")
    assert (tmp_path / f"out{suffix}").stat().st_size > 50


def test_a_file_appears_whole_or_not_at_all(result: Ingested, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old\n")

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rldk.core.event.Event.to_json", broken)
    with pytest.raises(LogWriteError, match=r"out\.jsonl cannot be written: No space left on device"):
        write_runs(result, path)
    assert path.read_text() == "old\n" and sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "out.jsonl"]


def test_nothing_is_left_behind_when_writing_fails_in_any_way(
    result: Ingested, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rldk.core.event.Event.to_json", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_runs(result, tmp_path / "out.jsonl")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_the_file_has_the_permissions_of_any_other(result: Ingested, tmp_path: Path) -> None:
    write_runs(result, tmp_path / "out.csv")
    (tmp_path / "other").touch()
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@pytest.mark.parametrize(
    ("name", "said"),
    [("out.xlsx", r"Expected the output to end in one of .csv, .parquet, .jsonl, got 'out.xlsx'"), ("out", "got 'out'"),
    ("no/such/out.csv", "does not exist: create it first"), ("folder.csv", "is a folder")],
)  # fmt: skip
def test_an_output_that_cannot_be_is_refused_first(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match=said):
        check_output(tmp_path / name)


def test_an_output_in_a_folder_that_may_not_be_written(result: Ingested) -> None:
    place = Path("/proc/out.csv")
    if not place.parent.is_dir():
        pytest.skip("no /proc here")
    with pytest.raises(LogWriteError, match="cannot be written"):
        write_runs(result, place)


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"Writing parquet needs pyarrow: pip install 'rldk\[parquet\]'"):
        check_output(tmp_path / "out.parquet")
