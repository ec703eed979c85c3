"""Each store is taken by its own adapter and declined by all others, whatever its name."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.adapter import Adapter
from rldk.ingest.choose import ADAPTERS, choose
from rldk.ingest.formats.mlflow_store import MLflowAdapter
from rldk.ingest.formats.parquet import ParquetAdapter
from rldk.ingest.formats.tensorboard import TensorBoardAdapter
from rldk.ingest.formats.trackio_store import TrackioAdapter
from rldk.ingest.formats.wandb_store import WandbAdapter

pytestmark = pytest.mark.full

STORES: list[type[Adapter]] = [TensorBoardAdapter, WandbAdapter, MLflowAdapter, TrackioAdapter, ParquetAdapter]


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of each kind under a name that says nothing."""
    path = tmp_path / "file.bin"
    if request.param == "tensorboard":
        pytest.importorskip("tensorboard")
        from tensorboard.summary import Writer

        writer = Writer(str(tmp_path / "events"))
        writer.add_scalar("loss", 0.5, step=1)
        writer.close()
        (written,) = (tmp_path / "events").iterdir()
        shutil.move(written, path)
    elif request.param == "wandb":
        shutil.copy(next(request.getfixturevalue("wandb_folder").glob("*/run-first.wandb")), path)
    elif request.param == "trackio":
        shutil.copy(request.getfixturevalue("trackio_folder") / "alpha.db", path)
    elif request.param == "mlflow":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE runs (run_uuid TEXT, name TEXT, lifecycle_stage TEXT, start_time INTEGER)")
        connection.execute(
            "CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER)"
        )
        connection.execute("INSERT INTO runs VALUES ('r', NULL, 'active', 0)")
        connection.execute("INSERT INTO metrics VALUES ('loss', 0.5, 0, 'r', 1, 0)")
        connection.commit()
        connection.close()
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        parquet.write_table(pyarrow.table({"step": [1], "loss": [0.5]}), path)
    return path


@pytest.mark.parametrize("store", ["tensorboard", "wandb", "mlflow", "trackio", "parquet"], indirect=True)
def test_one_adapter_takes_it(store: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["store"]
    assert [adapter.name for adapter in ADAPTERS if adapter(store).can_handle()] == [name]
    assert choose(store).name == name
    assert choose(store).runs()[0].columns["loss"].values[0] in (0.5, 1.0)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4096, b"PAR", b"SQLite format 3\0", b":W&B", b'{"step": 1, "loss": 2.0}\n', b"step,loss\n1,2\n"]
)
@pytest.mark.parametrize("name", ["events.out.tfevents.1.host", "run-x.wandb", "mlflow.db", "trackio.db", "table.parquet"])
def test_a_name_alone_convinces_nobody(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert not [adapter.name for adapter in STORES if adapter(path).can_handle() or adapter(tmp_path).can_handle()]


def test_an_empty_folder_is_declined_with_a_reason(tmp_path: Path) -> None:
    for adapter in (kind(tmp_path) for kind in STORES):
        assert not adapter.can_handle()
        assert adapter.why


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.name)
def test_asked_for_by_name_the_wrong_kind_is_refused(tmp_path: Path, kind: type[Adapter]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 2.0}\n')
    with pytest.raises(ReadError, match=f"cannot be read by the adapter '{kind.name}'"):
        choose(path, hint=kind.name)
