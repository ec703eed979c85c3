"""W&B's files, written by W&B in offline mode."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import MissingDependencyError, ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.wandb_store import MAGIC, WandbAdapter

pytestmark = [pytest.mark.full, pytest.mark.skipif(find_spec("wandb") is None, reason="needs wandb")]


def log_of(folder: Path, run_id: str = "first") -> Path:
    (path,) = folder.glob(f"*/run-{run_id}.wandb")
    return path


def test_the_history_of_a_run(wandb_folder: Path) -> None:
    adapter = choose(log_of(wandb_folder))
    (run,) = adapter.runs()
    assert (adapter.name, run.run_id) == ("wandb", "first")
    assert run.steps.tolist() == [0, 10, 20, 30, 40, 50]
    assert run.columns["loss"].values.tolist() == [1 / (step + 1) for step in range(6)]
    assert run.columns["flag"].values.tolist() == [0, 0, 0, 1, 1, 1]
    assert (run.wall_time > 1.7e9).all()
    assert not adapter.problems.summary()


def test_nested_keys_are_paths_and_media_are_left_out(wandb_folder: Path) -> None:
    rows = list(WandbAdapter(log_of(wandb_folder)).read())
    assert [row["train/kl"] for row in rows] == [0.25 * step for step in range(6)]
    assert not [key for row in rows for key in row if key.startswith(("histogram", "list"))]
    assert all(list(row)[:-1] == sorted(list(row)[:-1]) for row in rows), "the same keys in the same order, whatever the file's"


def test_values_that_are_not_finite_are_kept(wandb_folder: Path) -> None:
    (run,) = choose(log_of(wandb_folder)).runs()
    first, nan, *rest = run.columns["bad"].values.tolist()
    assert first == 1.0 and math.isnan(nan)
    assert rest == [math.inf, -math.inf, 0.0, 1e300]


def test_the_name_the_project_and_the_settings_are_noted(wandb_folder: Path) -> None:
    (run,) = choose(log_of(wandb_folder)).runs()
    assert run.notes[0] == "W&B run first named 'name of first' of the project 'project' with lr=1e-05"


def test_the_settings_of_a_run_are_its_config(wandb_folder: Path, tmp_path: Path) -> None:
    (run,) = choose(log_of(wandb_folder)).runs()
    assert run.config["learning_rate"] == 1e-5 and run.config.raw == {"lr": 1e-5, "deep": {"a": 1}}
    assert all(run.config["learning_rate"] == 1e-5 for run in choose(wandb_folder).runs())
    files = tmp_path / "run-20250101_000000-abc" / "files"
    files.mkdir(parents=True)
    (files / "wandb-summary.json").write_text('{"_step": 3, "_runtime": 2, "_timestamp": 1, "loss": 0.5, "reward": 1.0}')
    (files / "config.yaml").write_text("wandb_version: 1\n_wandb:\n  value: {a: 1}\nlearning_rate:\n  desc: null\n  value: 0.5\n")
    (run,) = choose(files.parent).runs()
    assert dict(run.config) == {"learning_rate": 0.5} and set(run.config.raw) == {"learning_rate"}


def test_a_folder_of_runs_and_the_folder_of_a_run(wandb_folder: Path, snapshot: Callable[[Path], Any]) -> None:
    before = snapshot(wandb_folder)
    runs = choose(wandb_folder).runs()
    assert [(run.run_id, run.columns["loss"].values[0]) for run in runs] == [("first", 1.0), ("second", 2.0)]
    (run,) = choose(log_of(wandb_folder).parent).runs()
    assert run.run_id == "first"
    assert snapshot(wandb_folder) == before


def test_cut_off_anywhere(wandb_folder: Path, tmp_path: Path) -> None:
    whole = log_of(wandb_folder).read_bytes()
    full = list(WandbAdapter(log_of(wandb_folder)).read())
    path = tmp_path / "run-first.wandb"
    counts = []
    for size in (*range(7, len(whole), 11), len(whole) - 1):
        path.write_bytes(whole[:size])
        adapter = WandbAdapter(path)
        assert adapter.can_handle()
        rows = list(adapter.read())
        assert rows == full[: len(rows)] or repr(rows) == repr(full[: len(rows)])
        counts.append(len(rows))
    assert counts == sorted(counts) and counts[0] == 0 and counts[-1] == 6
    assert "cut off" in adapter.problems.summary()


def test_a_damaged_byte_never_gives_a_wrong_number(wandb_folder: Path, tmp_path: Path) -> None:
    whole = log_of(wandb_folder).read_bytes()
    full = {repr(row) for row in WandbAdapter(log_of(wandb_folder)).read()}
    path = tmp_path / "run-first.wandb"
    for place in range(7, len(whole), 13):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        adapter = WandbAdapter(path)
        assert {repr(row) for row in adapter.read()} <= full
        assert adapter.problems.summary()


def test_records_over_several_blocks(tmp_path: Path) -> None:
    from wandb.proto import wandb_internal_pb2 as pb

    path = tmp_path / "long.wandb"
    records = []
    for step in range(2_000):
        items = [pb.HistoryItem(key="_step", value_json=str(step)), pb.HistoryItem(key="loss", value_json=str(step / 7))]
        items.append(pb.HistoryItem(key="text", value_json=json.dumps("x" * (step * 37 % 50_000 if step % 50 == 0 else 5))))
        records.append(pb.Record(history=pb.HistoryRecord(item=items)).SerializeToString())
    path.write_bytes(in_blocks(records))
    (run,) = choose(path).runs()
    assert run.steps.tolist() == list(range(2_000))
    assert run.columns["loss"].values.tolist() == [step / 7 for step in range(2_000)]
    damaged = bytearray(path.read_bytes())
    damaged[32768 * 3 + 500] ^= 1
    path.write_bytes(damaged)
    adapter = choose(path)
    (run,) = adapter.runs()
    assert 1_000 < len(run) < 2_000
    assert (run.columns["loss"].values == run.steps / 7).all()
    assert "damaged" in adapter.problems.summary()


def in_blocks(records: list[bytes]) -> bytes:
    """The records in W&B's envelope, by its description (LevelDB's log format)."""
    import struct
    import zlib

    out = bytearray(MAGIC)
    for data in records:
        rest, first = data, True
        while first or rest:
            room = 32768 - len(out) % 32768
            if room < 7:
                out += bytes(room)
                room = 32768
            part, rest = rest[: room - 7], rest[room - 7 :]
            kind = {(True, False): 1, (True, True): 2, (False, True): 3, (False, False): 4}[first, bool(rest)]
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
    return bytes(out)


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    """What W&B puts into `files/` of an online run."""
    path = tmp_path / "wandb" / "run-20251119_104422-abcdef12" / "files" / "wandb-summary.json"
    path.parent.mkdir(parents=True)
    values = {"_step": 198, "_runtime": 37066.5, "_timestamp": 1.7e9, "_wandb": {"runtime": 37066}, "loss": 0.5, "kl": 0.25}
    path.write_text(json.dumps({**values, "image": {"_type": "image-file", "width": 3}}))
    return path


def test_a_summary_is_one_row_and_says_so(summary: Path) -> None:
    for place in (summary, summary.parents[1], summary.parents[2]):
        adapter = choose(place)
        (run,) = adapter.runs()
        assert (adapter.name, run.run_id, run.steps.tolist()) == ("wandb", "abcdef12", [198])
        assert run.columns["loss"].values.tolist() == [0.5]
        assert run.wall_time.tolist() == [1.7e9]
        assert not [name for name in run.columns if name.startswith(("image", "_wandb"))]
        assert any("only a summary" in note for note in run.notes)


def test_a_run_without_history_falls_back_to_its_summary(summary: Path) -> None:
    folder = summary.parents[1]
    (folder / "run-abcdef12.wandb").write_bytes(MAGIC)
    (run,) = choose(folder).runs()
    assert run.columns["loss"].values.tolist() == [0.5]


@pytest.mark.parametrize("text", ['{"_step": [1, 2], "_runtime": [1, 2], "loss": [1, 2]}', '{"_step": 1, "loss": 2}', "{"])
def test_other_json_is_no_summary(tmp_path: Path, text: str) -> None:
    (tmp_path / "wandb-summary.json").write_text(text)
    assert not WandbAdapter(tmp_path / "wandb-summary.json").can_handle()


def test_rows_of_a_history_as_json_lines_are_no_summary(tmp_path: Path) -> None:
    row = json.dumps({"_step": 1, "_runtime": 2.0, "_timestamp": 3.0, "loss": 1.0})
    (tmp_path / "history.jsonl").write_text(f"{row}\n{row}\n")
    assert not WandbAdapter(tmp_path / "history.jsonl").can_handle()


def test_without_the_package_the_message_names_the_extra(wandb_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rldk\[trackers\]'"):
        choose(log_of(wandb_folder)).runs()


def test_a_summary_needs_no_package(summary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert len(choose(summary).runs()) == 1


def test_progress_goes_on_over_all_runs(wandb_folder: Path) -> None:
    told: list[tuple[int, int]] = []
    choose(wandb_folder, progress=lambda done, total: told.append((done, total))).runs()
    size = sum(path.stat().st_size for path in wandb_folder.glob("offline-*/*.wandb"))
    assert told[-1] == (size, size)


def test_a_folder_without_runs(tmp_path: Path, wandb_folder: Path) -> None:
    assert not WandbAdapter(tmp_path).can_handle()
    with pytest.raises(ReadError, match="No W&B run"):
        list(WandbAdapter(tmp_path).read())
    shutil.copy(log_of(wandb_folder), tmp_path / "run-first.wandb")
    (tmp_path / "metrics.jsonl").touch()
    assert not WandbAdapter(tmp_path).can_handle(), "a folder with other logs is left to those who look inside"
