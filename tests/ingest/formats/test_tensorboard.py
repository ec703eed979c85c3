"""TensorBoard's event files, written by TensorBoard's own writers."""

from __future__ import annotations

import gzip
import math
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldk.core.errors import MissingDependencyError, ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats import tensorboard
from rldk.ingest.formats.tensorboard import TensorBoardAdapter, masked_checksum

pytestmark = pytest.mark.full
pytest.importorskip("tensorboard")

from tensorboard.compat.proto import event_pb2, summary_pb2  # noqa: E402
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c as slow_crc  # noqa: E402
from tensorboard.plugins.histogram import summary_v2 as histogram  # noqa: E402
from tensorboard.summary import Writer  # noqa: E402
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

Rows = dict[int, dict[str, float]]


def write(folder: Path, rows: Rows, *, start: float = 1_700_000_000.0) -> Path:
    """An event file of plain values, an event for each, as torch and tensorboardX write them."""
    before = set(folder.iterdir()) if folder.is_dir() else set()
    writer = EventFileWriter(str(folder))
    for step, values in rows.items():
        for tag, value in values.items():
            summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])
            writer.add_event(event_pb2.Event(wall_time=start + step, step=step, summary=summary))
    writer.close()
    (path,) = set(folder.iterdir()) - before
    return path


def record(event: event_pb2.Event) -> bytes:
    data = event.SerializeToString()
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", slow_crc(head)) + data + struct.pack("<I", slow_crc(data))


def values(path: Path, tag: str) -> dict[int, float]:
    (run,) = choose(path).runs()
    column = run.columns[tag]
    return {int(step): float(value) for step, value, state in zip(run.steps, column.values, column.state, strict=True) if state}


def test_plain_values_steps_and_times(tmp_path: Path) -> None:
    path = write(tmp_path / "my-run", {1: {"loss": 0.5, "my/tag": 2.0}, 3: {"loss": 0.25}, 4: {"my/tag": 8.0}})
    adapter = choose(path)
    (run,) = adapter.runs()
    assert (adapter.name, run.run_id) == ("tensorboard", "my-run")
    assert run.steps.tolist() == [1, 3, 4]
    assert run.wall_time.tolist() == [1_700_000_001.0, 1_700_000_003.0, 1_700_000_004.0]
    assert values(path, "loss") == {1: 0.5, 3: 0.25}
    assert values(path, "my/tag") == {1: 2.0, 4: 8.0}
    assert not adapter.problems.summary()


def test_values_that_are_not_finite_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, {1: {"loss": math.nan}, 2: {"loss": math.inf}, 3: {"loss": -math.inf}, 4: {"loss": 0.0}})
    found = values(path, "loss")
    assert math.isnan(found.pop(1))
    assert found == {2: math.inf, 3: -math.inf, 4: 0.0}


def test_scalars_written_as_tensors(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path))
    for step in range(5):
        writer.add_scalar("loss", 1.0 / (step + 1), step=step)
    writer.close()
    assert values(tmp_path, "loss") == {step: float(np.float32(1.0 / (step + 1))) for step in range(5)}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32, np.int64, np.bool_])
def test_tensors_of_any_number_type(tmp_path: Path, kind: type[np.generic]) -> None:
    tensors = [tensor_util.make_tensor_proto(kind(1)), tensor_util.make_tensor_proto(np.array([kind(1)]))]
    events = [
        event_pb2.Event(
            wall_time=1.0, step=step, summary=summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="x", tensor=tensor)])
        )
        for step, tensor in enumerate(tensors)
    ]
    (tmp_path / "run.tfevents").write_bytes(b"".join(map(record, events)))
    assert values(tmp_path / "run.tfevents", "x") == {0: 1.0, 1: 1.0}


def test_what_is_no_scalar_is_left_out_and_said(tmp_path: Path) -> None:
    huge = tensor_util.make_tensor_proto(np.float32(1))
    huge.tensor_shape.dim.add(size=1 << 40)
    text = tensor_util.make_tensor_proto(b"words")
    counts = histogram.histogram_pb("counts", np.arange(9.0))
    event = event_pb2.Event(wall_time=1.0, step=1, summary=counts)
    for tag, tensor in (("text", text), ("huge", huge)):
        event.summary.value.add(tag=tag, tensor=tensor)
    event.summary.value.add(tag="loss", simple_value=0.5)
    path = tmp_path / "run.tfevents"
    path.write_bytes(record(event))
    (run,) = choose(path).runs()
    assert list(run.columns) == ["loss"]
    assert "3 tag(s) that are not scalars (histograms, images, text) left out" in run.notes


def test_files_of_one_folder_are_one_run_and_a_resume_replaces_what_it_repeats(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = write(folder, {step: {"loss": float(step)} for step in range(1, 11)})
    second = write(folder, {step: {"loss": float(-step)} for step in range(6, 16)})
    first.rename(folder / "z.tfevents.later.in.the.alphabet")
    assert second.exists()
    (run,) = choose(folder).runs()
    assert run.run_id == "run"
    assert run.steps.tolist() == list(range(1, 16))
    assert run.columns["loss"].values.tolist() == [1, 2, 3, 4, 5, *range(-6, -16, -1)]
    assert "resumed at step 6: 5 earlier rows from there on were replaced" in run.notes


def test_files_with_different_tags_are_merged_by_step(tmp_path: Path) -> None:
    write(tmp_path, {step: {"loss": float(step)} for step in range(5)})
    write(tmp_path, {step: {"lr": step / 10} for step in range(5)})
    (run,) = choose(tmp_path).runs()
    assert run.steps.tolist() == [0, 1, 2, 3, 4]
    assert {"loss", "lr"} == set(run.columns)


def test_nested_folders_are_runs_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "a" / "x", {1: {"loss": 1.0}})
    write(tmp_path / "logs" / "b", {1: {"loss": 2.0}})
    runs = choose(tmp_path / "logs").runs()
    assert {run.run_id: run.columns["loss"].values.tolist() for run in runs} == {"a/x": [1.0], "b": [2.0]}


def test_a_folder_with_other_logs_is_left_to_those_who_look_inside(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "now", {1: {"loss": 1.0}})
    (tmp_path / "checkpoint-1").mkdir()
    (tmp_path / "checkpoint-1" / "trainer_state.json").write_text("{}")
    assert not TensorBoardAdapter(tmp_path).can_handle()
    assert TensorBoardAdapter(tmp_path / "runs").can_handle()


def test_a_huge_folder_is_decided_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}").mkdir()
        (tmp_path / f"{number:03}" / "weights.bin").touch()
    monkeypatch.setattr("rldk.ingest.formats.tensorboard._LOOK", 100)
    write(tmp_path / "zzz", {1: {"loss": 1.0}})
    assert not TensorBoardAdapter(tmp_path).can_handle()


def test_tags_with_the_names_of_axes_do_not_move_the_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "r", {5: {"step": 77.0, "loss": 1.0, "wall_time": 3.0}, 6: {"step": 78.0, "loss": 2.0}})
    (run,) = choose(path).runs()
    assert run.steps.tolist() == [5, 6]
    assert run.wall_time.tolist() == [1_700_000_005.0, 1_700_000_006.0]


def test_cut_off_anywhere(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", {step: {"loss": float(step)} for step in range(1, 8)}).read_bytes()
    ends, place = [], 0
    while place < len(whole):
        place += 16 + struct.unpack_from("<Q", whole, place)[0]
        ends.append(place)
    path = tmp_path / "cut"
    for size in range(13, len(whole)):
        path.write_bytes(whole[:size])
        adapter = TensorBoardAdapter(path)
        assert adapter.can_handle()
        rows = [row["loss"] for row in adapter.read()]
        assert rows == [float(step) for step in range(1, sum(end <= size for end in ends))]
        assert ("cut off" in adapter.problems.summary()) == (size not in ends)


def test_a_damaged_byte_never_gives_a_wrong_number(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", {step: {"loss": float(step)} for step in range(1, 6)}).read_bytes()
    path = tmp_path / "damaged"
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        adapter = TensorBoardAdapter(path)
        rows = {row["step"]: row["loss"] for row in adapter.read()}
        assert rows.items() <= {step: float(step) for step in range(1, 6)}.items()
        assert adapter.problems.summary()


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "plain", {1: {"loss": 0.5}})
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert values(packed, "loss") == {1: 0.5}


def test_nothing_is_changed_and_progress_is_told(tmp_path: Path, snapshot: Callable[[Path], Any]) -> None:
    write(tmp_path / "a", {1: {"loss": 0.5}})
    write(tmp_path / "b", {1: {"loss": 0.5}})
    before = snapshot(tmp_path)
    told: list[tuple[int, int]] = []
    choose(tmp_path, progress=lambda done, total: told.append((done, total))).runs()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert told[-1] == (size, size) and len(told) == 2
    assert snapshot(tmp_path) == before


def test_without_the_package_the_message_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {1: {"loss": 0.5}})
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    adapter = choose(path)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rldk\[trackers\]'"):
        adapter.runs()


def test_without_checksums_it_is_recognised_and_the_extra_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {1: {"loss": 1.0}, 2: {"loss": 0.5}})
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    for cached in (tensorboard._crc32c, tensorboard._checksum_of_length):
        cached.cache_clear()
    adapter = choose(path)
    assert adapter.name == "tensorboard"
    with pytest.raises(MissingDependencyError, match=r"pip install 'rldk\[trackers\]'"):
        adapter.runs()


def test_a_folder_whose_files_went_away(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No event file"):
        list(TensorBoardAdapter(tmp_path).read())


def test_checksums_are_those_of_tensorboard() -> None:
    draw = random.Random(0)
    texts = [draw.randbytes(draw.choice([4, 5, 63, 64, 65, 127, 128, 129, 191, 700, 5_000])) for _ in range(200)]
    assert [masked_checksum(text) for text in texts] == [slow_crc(text) for text in texts]


@pytest.mark.parametrize("text", ['{"beta": 0.1, "hub_token": "x"}', "|param|value|\n|-|-|\n|beta|0.1|\n"])
def test_settings_that_are_logged_as_text_are_the_run_s_config(text: str, tmp_path: Path) -> None:
    write(tmp_path, {1: {"loss": 1.0}, 2: {"loss": 0.5}})
    writer = EventFileWriter(str(tmp_path))
    tensor = tensor_util.make_tensor_proto([text.encode()])
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))
    value = summary_pb2.Summary.Value(tag="args/text_summary", tensor=tensor, metadata=metadata)
    writer.add_event(event_pb2.Event(wall_time=1.0, step=0, summary=summary_pb2.Summary(value=[value])))
    writer.close()
    (run,) = choose(tmp_path).runs()
    assert dict(run.config) == {"kl_coef": 0.1} and set(run.config.raw) == {"beta"}
    assert set(run.columns) == {"loss"}
