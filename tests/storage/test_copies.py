"""Logs in archives, on the web, in fsspec's memory and in MLflow; and names that would lead out of their folder."""

from __future__ import annotations

import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from rldk.cli.main import main
from rldk.core.errors import ReadError, UsageError
from rldk.storage import archives, tracked
from rldk.storage.copies import local_copies
from rldk.storage.places import cache_folder, is_url, local_path, safe_below, shown

from .conftest import write_run

pytestmark = pytest.mark.full
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLDK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_run(tmp_path / "logs" / "run.jsonl", "entropy_explosion", steps=100)


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_an_archive_is_read_as_a_folder(log: Path, tmp_path: Path, ending: str, capsys: Capture) -> None:
    path = tmp_path / f"runs.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(log, "a/run.jsonl")
    else:
        with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w") as tar:
            tar.add(log, "a/run.jsonl")
    assert main(["scan", str(path), "--json"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["path"] == f"{path}/a/run.jsonl"
    assert local_copies(path) == local_copies(path)


@pytest.mark.parametrize("name", ["../out.jsonl", "/tmp/rldk_out.jsonl", "a/../../out.jsonl", "..\\out.jsonl", "C:/out.jsonl"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"{}")
    with pytest.raises(ReadError, match="leads out of its folder"):
        local_copies(path)
    tar_path = tmp_path / "evil.tar"
    with tarfile.open(tar_path, "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    with pytest.raises(ReadError, match="leads out of its folder"):
        local_copies(tar_path)
    assert not list(tmp_path.rglob("out.jsonl"))


def test_links_in_an_archive_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as tar:
        link = tarfile.TarInfo("passwd.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        member = tarfile.TarInfo("a.jsonl")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"{}"))
    assert [found.name for found in local_copies(path).iterdir() if found.suffix == ".jsonl"] == ["a.jsonl"]


def test_an_archive_that_grows_without_end_is_refused(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_SMALL", 1 << 16)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.jsonl", bytes(8 << 20))
    with pytest.raises(ReadError, match="far more than its size suggests"):
        local_copies(path)
    assert not [found for found in (cache / "archive").rglob("*") if found.is_file()], "nothing of it is left"


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(4):
            archive.writestr(f"{number}.jsonl", b"{}")
    with pytest.raises(ReadError, match="more than 3 files"):
        local_copies(path)


def test_a_broken_archive_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ReadError, match=r"broken\.zip cannot be unpacked"):
        local_copies(tmp_path / "broken.zip")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web(log: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(log.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_file_on_the_web(web: str, log: Path, capsys: Capture) -> None:
    assert main(["scan", f"{web}/run.jsonl?token=hidden", "--json"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["path"] == f"{web}/run.jsonl"
    assert main(["scan", f"{web}/none.jsonl"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_files_in_memory_by_pattern(log: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for name in ("x/a/log.jsonl", "x/b/log.jsonl", "x/b/model.pt"):
        memory.pipe(f"/{name}", log.read_bytes())
    folder = local_copies("memory://x/*/log.jsonl")
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.jsonl")) == ["a/log.jsonl", "b/log.jsonl"]
    assert [path.name for path in local_copies("memory://x").rglob("*") if path.is_file()].count("model.pt") == 0


@pytest.mark.filterwarnings("default")  # of what MLflow calls
def test_a_run_of_an_mlflow_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    mlflow = pytest.importorskip("mlflow.tracking")
    from mlflow.entities import Metric

    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    run = client.create_run(client.create_experiment("tuning"), run_name="first")
    client.log_param(run.info.run_id, "learning_rate", "1e-5")
    for step in range(20):
        client.log_metric(run.info.run_id, "reward", 0.1 * step, step=step)
        client.log_metric(run.info.run_id, "kl", 0.01 * step, step=step)
    for url in ("mlflow://tuning", f"mlflow://{run.info.run_id}"):
        assert main(["scan", url, "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["runs"]
        assert (found["run_id"], found["events"]) == ("first", 20)
    assert main(["scan", "mlflow://none"]) == 2
    monkeypatch.setattr(tracked, "_PAGE", 2)
    for number in range(1, 5):
        other = client.create_run(run.info.experiment_id, run_name=f"other{number}")
        client.log_batch(other.info.run_id, [Metric("reward", number + 0.1 * step, 0, step) for step in range(20)])
    assert main(["scan", "mlflow://tuning", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 5


def test_an_error_of_a_tracker_without_a_text_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError

    wandb = SimpleNamespace(Api=fail, errors=SimpleNamespace(Error=KeyError))
    monkeypatch.setattr(tracked, "require", lambda *given, **options: wandb)
    with pytest.raises(ReadError, match=r"wandb://entity/project cannot be read: OSError\."):
        local_copies("wandb://entity/project")


def test_an_address_without_a_run_of_wandb() -> None:
    with pytest.raises(UsageError, match="wandb://entity/project"):
        local_copies("wandb://entity")


def test_a_copy_is_shown_by_its_address() -> None:
    assert shown(local_path("s3://bucket/a/b.jsonl")) == "s3://bucket/a/b.jsonl"
    assert shown("/data/b.jsonl") == "/data/b.jsonl"
    assert local_path("https://example.org/a/b?key=secret") == cache_folder() / "https/example.org/a/b"
    assert is_url("gs://bucket/x") and not is_url("C:/x") and not is_url("ftp://x/y")
    with pytest.raises(ReadError):
        safe_below(cache_folder(), "a/../../b")
