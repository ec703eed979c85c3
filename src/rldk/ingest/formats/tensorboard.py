"""TensorBoard: an event file, a run's folder of them, or a folder of runs.

An event file is a record file of TensorFlow: `length, checksum, bytes, checksum`, again and again. TensorBoard's own reader
takes the checksums byte by byte in Python, which is ten times as slow; what is inside the records is left to its definitions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from rldk.core.errors import MissingDependencyError, ReadError, require
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.stores import FileProgress, Point, first_bytes, gather, list_folder, report, walk_files
from rldk.ingest.run_settings import printed_settings
from rldk.log.blocks import Progress, iter_blocks
from rldk.log.problems import LineProblems

__all__ = ["TensorBoardAdapter", "iter_records", "starts_with_event"]

_HEADER = struct.Struct("<QI")
_LEAST, _MOST, _LONGEST = 9, 16 << 20, 4 << 30
"""The bytes of an event: no less than its wall time, no more than scalars can need, and no more than can be skipped."""


def starts_with_event(head: bytes) -> bool:
    """Whether a file begins with a record that holds an event: a sound header, and the field of the wall time first.

    Where the package that makes checksums is not installed, by the words that every writer begins with.
    """
    if len(head) <= _HEADER.size or head[_HEADER.size] != 0x09:
        return False
    length, check = _HEADER.unpack_from(head)
    if not _LEAST <= length <= _MOST:
        return False
    try:
        return bool(_checksum_of_length(length) == check)
    except MissingDependencyError:
        return b"brain.Event:" in head[:64]


def iter_records(blocks: Iterable[bytes], problems: LineProblems) -> Iterator[bytes]:
    """Give the sound records in order. A damaged one is left out; after a damaged header nothing can be found again.

    One that is too large for scalars is skipped, and not held.
    """
    held = b""
    number = offset = skipped = 0
    for block in blocks:
        if skipped:
            offset += min(skipped, len(block))
            skipped, block = max(0, skipped - len(block)), block[skipped:]
        held += block
        place = 0
        while len(held) - place >= _HEADER.size:
            length, check = _HEADER.unpack_from(held, place)
            if not _LEAST <= length <= _LONGEST or _checksum_of_length(length) != check:
                problems.damage = f"damaged at byte {offset + place}: what follows cannot be read"
                return
            start, end = place + _HEADER.size, place + _HEADER.size + length
            if length > _MOST:
                number += 1
                problems.add(number, f"a record of more than {_MOST >> 20} MiB was left out")
                skipped, place = max(0, end + 4 - len(held)), min(end + 4, len(held))
                continue
            if end + 4 > len(held):
                break
            record, place = held[start:end], end + 4
            number += 1
            if masked_checksum(record) == int.from_bytes(held[end:place], "little"):
                yield record
            else:
                problems.add(number, "the record is damaged: its checksum does not fit")
        offset += place
        held = held[place:]
    if (held or skipped) and problems.damage is None:
        problems.damage = f"the last record is cut off after {len(held)} bytes: its writer died or is still writing"


def masked_checksum(data: bytes) -> int:
    """CRC-32C as record files store it."""
    crc = int(_crc32c()(data))
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@lru_cache(maxsize=4096)
def _checksum_of_length(length: int) -> int:
    """The checksum of a header; the records of a file have few lengths."""
    return masked_checksum(length.to_bytes(8, "little"))


@cache
def _crc32c() -> Callable[[bytes], int]:
    found: Callable[[bytes], int] = require("google_crc32c", extra="trackers", purpose="Reading TensorBoard files").value
    return found


_OTHER_LOGS = frozenset({".csv", ".db", ".json", ".jsonl", ".log", ".parquet", ".tsv", ".txt", ".wandb", ".yaml"})
_DEPTH = 6
_LOOK = 5_000
_FLOAT, _STRING = 1, 7
_MOST_TAGS = 1_000
_SETTINGS = ("args/text_summary", "hyperparameters/text_summary", "config/text_summary")
"""Texts in which Hugging Face, CleanRL and others tell the settings of a run."""


class TensorBoardAdapter(Adapter):
    """Reads the scalars of event files, written as plain values or as tensors.

    The files of one folder are one run, in the order in which they were begun; each folder with event files is a run
    of its own. A folder that has none itself is read as a whole only if nothing else in it looks like a log.
    """

    name: ClassVar[str] = "tensorboard"
    title: ClassVar[str] = "TensorBoard event files"
    folders: ClassVar[bool] = True

    def can_handle(self) -> bool:
        if self.source.is_folder:
            return self._owns(self.source.path)
        found = starts_with_event(self.source.head)
        self.why = "it begins with the record of an event" if found else "it does not begin with the record of an event"
        return found

    def _owns(self, folder: Path) -> bool:
        if any(_is_event_file(Path(entry.path)) for entry in list_folder(folder, _LOOK)):
            self.why = "a folder with event files"
            return True
        found = 0
        for path in walk_files(folder, depth=_DEPTH, most=_LOOK):
            if path.suffix in _OTHER_LOGS:
                self.why = f"a folder with other logs in it ({path.name})"
                return False
            found += _is_event_file(path)
        self.why = f"a folder of runs with {found} event file(s)" if found else "a folder without event files"
        return found > 0

    def read(self) -> Iterator[Mapping[str, Any]]:
        runs = self._files_of_runs()
        account = FileProgress([path for files in runs.values() for path in files], self.progress)
        values = _Values()
        for run_id, files in runs.items():
            values.settings = {}
            points = (point for path in files for point in self._points(path, values, account.of(path)))
            yield from gather(points, run_id)
            self.settings[run_id] = values.settings
        if values.others:
            self.notes.append(f"{len(values.others)} tag(s) that are not scalars (histograms, images, text) left out")

    def _files_of_runs(self) -> dict[str | None, list[Path]]:
        root = self.source.path
        if not self.source.is_folder:
            return {None: [root]}
        runs: dict[str | None, list[Path]] = {}
        for path in walk_files(root, depth=_DEPTH):
            if _is_event_file(path):
                inner = path.parent.relative_to(root).as_posix()
                runs.setdefault(root.absolute().name if inner == "." else inner, []).append(path)
        if not runs:
            raise ReadError(f"No event file in {root}.")
        for files in runs.values():
            files.sort(key=_begun)
        return dict(sorted(runs.items(), key=lambda run: _begun(run[1][0])))

    def _points(self, path: Path, values: _Values, progress: Progress) -> Iterator[Point]:
        problems = LineProblems() if self.source.is_folder else self.problems
        parse, decode_error = values.event.FromString, values.decode_error
        for number, record in enumerate(iter_records(iter_blocks(path, problems, progress), problems), 1):
            try:
                event = parse(record)
            except decode_error:
                problems.add(number, "the record is not an event")
                continue
            step, time = event.step, event.wall_time
            for value in event.summary.value:
                number_logged = value.simple_value
                if number_logged == 0.0 and not value.HasField("simple_value"):
                    other = values.of_tensor(value)
                    if other is None:
                        continue
                    number_logged = other
                yield step, time, value.tag or value.node_name, number_logged
        if problems is not self.problems:
            report(self.problems, problems, path.relative_to(self.source.path).as_posix())


class _Values:
    """Scalars out of summaries that hold no plain value, by TensorBoard's own definitions; others are known by tag."""

    def __init__(self) -> None:
        purpose = "Reading TensorBoard files"
        self.event = require("tensorboard.compat.proto.event_pb2", extra="trackers", purpose=purpose).Event
        self.decode_error = require("google.protobuf.message", extra="trackers", purpose=purpose).DecodeError
        self._to_array = require("tensorboard.util.tensor_util", extra="trackers", purpose=purpose).make_ndarray
        self._plugins: dict[str, str] = {}
        self.others: set[str] = set()
        self.settings: dict[str, Any] = {}

    def of_tensor(self, value: Any) -> float | None:
        """The number in a tensor of one element, unless its tag was declared to be something else than a scalar."""
        tag = value.tag
        if plugin := value.metadata.plugin_data.plugin_name:
            self._plugins.setdefault(tag, plugin)
        number = None
        if value.HasField("tensor") and self._plugins.get(tag, "scalars") == "scalars":
            number = self._number(value.tensor)
        if tag in _SETTINGS and value.tensor.string_val:
            self.settings |= printed_settings(value.tensor.string_val[0].decode("utf-8", "replace"))
        if number is None and len(self.others) < _MOST_TAGS:
            self.others.add(tag)
        return number

    def _number(self, tensor: Any) -> float | None:
        if any(dim.size != 1 for dim in tensor.tensor_shape.dim) or tensor.dtype == _STRING:
            return None
        if tensor.dtype == _FLOAT:
            if len(tensor.float_val) == 1:
                return float(tensor.float_val[0])
            if len(tensor.tensor_content) == 4:
                return float(struct.unpack("<f", tensor.tensor_content)[0])
        try:
            return float(self._to_array(tensor).item())
        except (TypeError, ValueError):
            return None


def _is_event_file(path: Path) -> bool:
    """Whether TensorBoard would take the file, and its beginning bears it out."""
    return "tfevents" in path.name and starts_with_event(first_bytes(path, 64))


def _begun(path: Path) -> tuple[float, str]:
    """When a file was begun, by the wall time of its first event."""
    head = first_bytes(path, 64)
    return (struct.unpack_from("<d", head, 13)[0] if len(head) >= 21 else 0.0, path.name)
