"""MLflow's database and file store, written by MLflow."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.mlflow_store import MLflowAdapter

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(None in (find_spec("mlflow"), find_spec("sqlalchemy")), reason="needs mlflow with a database"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"),  # in MLflow
]

BAD = [1.0, math.nan, math.inf, -math.inf, 0.0, 1e300]


def fill(uri: str, artifacts: Path) -> dict[str, str]:
    """Two runs of one name, one with a slash in its key and values that are not finite, and a deleted one."""
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.create_experiment("experiment", artifact_location=str(artifacts))
    ids = {}
    for number, name in enumerate(("same", "same", "bad", "gone")):
        run = client.create_run(experiment, run_name=name, start_time=1_700_000_000_000 + number).info.run_id
        ids[f"{name}-{number}"] = run
        metrics = []
        for step in range(6):
            at = 1_700_000_001_000 + step * 500
            metrics += [Metric("train/loss", (number + 1) / (step + 1), at, step * 10), Metric("kl", 0.25 * step, at, step * 10)]
            metrics.append(Metric("system/cpu", 50.0, at, step))
            if name == "bad":
                metrics.append(Metric("bad", BAD[step], at + 1, step * 10))
        client.log_batch(run, metrics=metrics)
        client.log_param(run, "learning_rate", 10.0**-number)
        client.log_param(run, "actor/clip_ratio", 0.2)
        client.log_param(run, "api_key", "abc")
        client.set_terminated(run)
        if name == "gone":
            client.delete_run(run)
    return ids


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of MLflow without any run, to be copied: MLflow takes seconds to make one."""
    from mlflow.tracking import MlflowClient

    path = tmp_path_factory.mktemp("empty") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        (folder / "db").mkdir()
        shutil.copy(empty_database, folder / "db")
        fill(f"sqlite:///{folder / 'db' / 'mlflow.db'}", folder / "artifacts")
        fill((folder / "mlruns").as_uri(), folder / "artifacts")
    yield {"database": folder / "db" / "mlflow.db", "files": folder / "mlruns"}


@pytest.fixture(params=["database", "files"])
def store(stores: dict[str, Path], request: pytest.FixtureRequest) -> Path:
    return stores[request.param]


def active_run(files: Path) -> Path:
    """A run of the file store that was not deleted and has a loss; which folder comes first is up to the file system."""
    runs = sorted(path.parents[2] for path in files.glob("*/*/metrics/train/loss"))
    return next(run for run in runs if "lifecycle_stage: active" in (run / "meta.yaml").read_text())


def test_parameters_are_the_config_of_their_run_without_secrets(store: Path) -> None:
    runs = choose(store).runs()
    assert [run.config["learning_rate"] for run in runs] == [1.0, 0.1, 0.01]
    assert [run.config["clip_range"] for run in runs] == [0.2, 0.2, 0.2]
    assert not any("api_key" in run.config.raw for run in runs)


def test_runs_are_told_apart_by_id_and_named(store: Path) -> None:
    adapter = choose(store)
    runs = adapter.runs()
    assert adapter.name == "mlflow"
    assert [run.run_id.split(" (")[0] for run in runs] == ["same", "same", "bad"]
    assert len({run.run_id for run in runs}) == 3, "two runs of one name are two runs"
    for number, run in enumerate(runs):
        assert run.steps.tolist() == [0, 10, 20, 30, 40, 50]
        assert run.columns["loss"].values.tolist() == [(number + 1) / (step + 1) for step in range(6)]
        assert run.wall_time.tolist() == [1_700_000_001 + step / 2 for step in range(6)]


def test_values_that_are_not_finite_are_kept(store: Path) -> None:
    run = choose(store).runs()[-1]
    first, nan, *rest = run.columns["bad"].values.tolist()
    assert first == 1.0 and math.isnan(nan)
    assert rest == [math.inf, -math.inf, 0.0, 1e300]


def test_what_is_left_out_is_said(store: Path) -> None:
    run = choose(store).runs()[0]
    assert "1 deleted run(s) left out" in run.notes
    assert any(note.startswith("`system/…` metrics left out") for note in run.notes)
    assert "system/cpu" not in run.columns


def test_nothing_is_changed_and_progress_is_told(store: Path, snapshot: Callable[[Path], Any]) -> None:
    folder = store if store.is_dir() else store.parent
    before = snapshot(folder)
    told: list[tuple[int, int]] = []
    choose(store, progress=lambda done, total: told.append((done, total))).runs()
    assert snapshot(folder) == before
    assert told[-1][0] == told[-1][1] > 0


def test_an_experiment_and_a_single_run(stores: dict[str, Path]) -> None:
    run_folder = active_run(stores["files"])
    assert len(choose(run_folder.parent).runs()) == 3
    assert len(choose(run_folder).runs()) == 1
    assert not MLflowAdapter(run_folder / "metrics").can_handle()


def test_a_resumed_run_replaces_what_it_repeats(tmp_path: Path, empty_database: Path) -> None:
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    shutil.copy(empty_database, tmp_path)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    run = client.create_run(client.create_experiment("e", artifact_location=str(tmp_path))).info.run_id
    for start, first, sign in ((0, 1, 1.0), (1_000_000, 6, -1.0)):
        metrics = [Metric("loss", sign * step, start + step, step) for step in range(first, first + 10)]
        client.log_batch(run, metrics=[*metrics, Metric("eval/acc", 0.5, start + 10, 10)])
    (found,) = choose(tmp_path / "mlflow.db").runs()
    assert found.columns["loss"].values.tolist() == [1, 2, 3, 4, 5, *range(-6, -16, -1)]
    assert any("resumed at step 6" in note for note in found.notes)


def test_keys_logged_one_by_one_are_one_row(tmp_path: Path, empty_database: Path) -> None:
    from mlflow.tracking import MlflowClient

    shutil.copy(empty_database, tmp_path)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    run = client.create_run(client.create_experiment("e", artifact_location=str(tmp_path)), run_name="r").info.run_id
    for step in range(4):
        client.log_metric(run, "loss", float(step), step=step)
        client.log_metric(run, "kl", float(step), step=step)
    rows = list(MLflowAdapter(tmp_path / "mlflow.db").read())
    assert [sorted(row) for row in rows] == [["kl", "loss", "run_id", "step", "wall_time"]] * 4


def test_a_database_that_is_being_written_to(stores: dict[str, Path], tmp_path: Path, snapshot: Callable[[Path], Any]) -> None:
    path = tmp_path / "mlflow.db"
    shutil.copy(stores["database"], path)
    writer = sqlite3.connect(path)
    try:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("DELETE FROM metrics")
        writer.execute("CREATE TABLE filler AS SELECT randomblob(100000)")
        before = snapshot(tmp_path)
        assert "mlflow.db-journal" in before
        assert [len(run) for run in choose(path).runs()] == [6, 6, 6], "the deletion is not committed"
        assert snapshot(tmp_path) == before
    finally:
        writer.rollback()
        writer.close()


def test_a_database_that_is_locked(stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.ingest.formats.sqlite._PATIENCE", 0.05)
    path = tmp_path / "mlflow.db"
    shutil.copy(stores["database"], path)
    writer = sqlite3.connect(path)
    try:
        writer.execute("BEGIN EXCLUSIVE")
        assert len(choose(path).runs()) == 3
    finally:
        writer.rollback()
        writer.close()


def test_a_database_cut_off_anywhere(stores: dict[str, Path], tmp_path: Path) -> None:
    whole = stores["database"].read_bytes()
    path = tmp_path / "mlflow.db"
    for size in range(16, len(whole), len(whole) // 60):
        path.write_bytes(whole[:size])
        try:
            runs = choose(path).runs()
        except ReadError:
            continue
        assert all(
            value in {(number + 1) / (step + 1) for number in range(3) for step in range(6)}
            for run in runs
            for value in run.columns["loss"].values
        )


def test_a_metric_file_cut_off_anywhere(stores: dict[str, Path], tmp_path: Path) -> None:
    source = active_run(stores["files"])
    folder = tmp_path / "run"
    shutil.copytree(source, folder)
    path = folder / "metrics" / "train" / "loss"
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        adapter = MLflowAdapter(folder)
        losses = [row["train/loss"] for row in adapter.read() if "train/loss" in row]
        assert len(losses) == whole[:size].count(b"\n")
        assert ("torn" in adapter.problems.summary()) == (size > 0 and whole[size - 1 : size] != b"\n")


def test_lines_of_a_metric_file_that_are_none(tmp_path: Path, stores: dict[str, Path]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(active_run(stores["files"]), folder)
    (folder / "metrics" / "kl").write_text("1 0.5 1\nhello\n2 x 2\n3 0.25 99999999999999999999999\n4 0.75 4\n5 1.0\n")
    adapter = MLflowAdapter(folder)
    found = {row["step"]: row["kl"] for row in adapter.read() if "kl" in row}
    assert found == {1: 0.5, 4: 0.75, 0: 1.0}
    assert adapter.problems.total == 3
    assert "kl: not `timestamp value step`" in adapter.problems.summary()


def test_a_view_instead_of_a_table_is_not_asked(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as connection:
        connection.execute("CREATE TABLE runs (run_uuid, lifecycle_stage, start_time)")
        connection.execute("CREATE VIEW metrics AS SELECT 1 key, 2 value, 3 timestamp, 4 run_uuid")
    connection.close()
    assert not MLflowAdapter(tmp_path / "mlflow.db").can_handle()
