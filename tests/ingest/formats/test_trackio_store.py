"""trackio's databases, written by trackio."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.trackio_store import TrackioAdapter

pytestmark = [pytest.mark.full, pytest.mark.skipif(find_spec("trackio") is None, reason="needs trackio")]


def test_the_runs_of_a_project(trackio_folder: Path) -> None:
    adapter = choose(trackio_folder / "alpha.db")
    runs = adapter.runs()
    assert adapter.name == "trackio"
    assert [run.run_id for run in runs] == ["one", "two"]
    for run in runs:
        assert run.steps.tolist() == [0, 10, 20, 30, 40, 50]
        assert run.columns["loss"].values.tolist() == [1 / (step + 1) for step in range(6)]
        assert run.columns["kl_mean"].values.tolist() == [0.25 * step for step in range(6)]
        assert (run.wall_time > 1.7e9).all()


def test_values_that_are_not_finite_are_kept(trackio_folder: Path) -> None:
    run = choose(trackio_folder / "alpha.db").runs()[0]
    first, nan, *rest = run.columns["bad"].values.tolist()
    assert first == 1.0 and math.isnan(nan)
    assert rest == [math.inf, -math.inf, 0.0, 1e300]


def test_a_folder_of_projects_is_not_changed(trackio_folder: Path, snapshot: Callable[[Path], Any]) -> None:
    before = snapshot(trackio_folder)
    runs = choose(trackio_folder).runs()
    assert [run.run_id for run in runs] == ["alpha/one", "alpha/two", "beta/one"]
    assert snapshot(trackio_folder) == before, "no -wal or -shm, which SQLite itself would leave here"


def test_what_waits_in_the_journal_of_a_live_run_is_read(
    trackio_folder: Path, tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    path = tmp_path / "alpha.db"
    shutil.copy(trackio_folder / "alpha.db", path)
    writer = sqlite3.connect(path)
    try:
        row = ("new", "live", "2026-01-01", 7, '{"loss": 9.0}')
        writer.execute("INSERT INTO metrics (run_id, run_name, timestamp, step, metrics) VALUES (?, ?, ?, ?, ?)", row)
        writer.commit()
        before = snapshot(tmp_path)
        assert "alpha.db-wal" in before
        live = choose(path).runs()[-1]
        assert (live.run_id, live.steps.tolist(), live.columns["loss"].values.tolist()) == ("live", [7], [9.0])
        assert live.wall_time.tolist() == [1_767_225_600.0], "a time without a zone is UTC"
        assert snapshot(tmp_path) == before
    finally:
        writer.close()


def test_the_schema_before_runs_had_ids(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)")
    rows = [(f"2025-01-01T00:00:0{step}", name, step, f'{{"loss": {step}.5}}') for step in range(3) for name in ("a", "b")]
    connection.executemany("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", rows)
    connection.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('x', 'a', 4, 'no json')")
    connection.commit()
    connection.close()
    adapter = choose(path)
    runs = adapter.runs()
    assert {run.run_id: run.columns["loss"].values.tolist() for run in runs} == {"a": [0.5, 1.5, 2.5], "b": [0.5, 1.5, 2.5]}
    assert adapter.problems.total == 1


def test_two_runs_of_one_name_are_two_runs(trackio_folder: Path, tmp_path: Path) -> None:
    shutil.copy(trackio_folder / "alpha.db", tmp_path / "alpha.db")
    connection = sqlite3.connect(tmp_path / "alpha.db")
    connection.execute("UPDATE metrics SET run_name = 'one'")
    connection.commit()
    connection.close()
    first, second = choose(tmp_path / "alpha.db").runs()
    assert first.run_id.startswith("one (") and second.run_id.startswith("one (") and first.run_id != second.run_id


def test_the_tables_that_trackio_exports(trackio_folder: Path) -> None:
    adapter = choose(trackio_folder / "alpha.parquet")
    runs = adapter.runs()
    assert (adapter.name, len(runs)) == ("parquet", 2)
    for run in runs:
        assert run.steps.tolist() == [0, 10, 20, 30, 40, 50]
        assert run.columns["loss"].values.tolist() == [1 / (step + 1) for step in range(6)]
        assert math.isnan(run.columns["bad"].values[1]) and run.columns["bad"].values[2] == math.inf


def test_cut_off_anywhere(trackio_folder: Path, tmp_path: Path) -> None:
    whole = (trackio_folder / "alpha.db").read_bytes()
    path = tmp_path / "alpha.db"
    for size in range(16, len(whole), len(whole) // 60):
        path.write_bytes(whole[:size])
        try:
            runs = choose(path).runs()
        except ReadError:
            continue
        assert all(value in {1 / (step + 1) for step in range(6)} for run in runs for value in run.columns["loss"].values)


def test_a_folder_with_other_files_is_left_to_those_who_look_inside(trackio_folder: Path, tmp_path: Path) -> None:
    shutil.copy(trackio_folder / "alpha.db", tmp_path / "alpha.db")
    assert TrackioAdapter(tmp_path).can_handle()
    (tmp_path / "metrics.jsonl").touch()
    assert not TrackioAdapter(tmp_path).can_handle()
    with pytest.raises(ReadError, match="No database of trackio"):
        list(TrackioAdapter(tmp_path.parent).read())
