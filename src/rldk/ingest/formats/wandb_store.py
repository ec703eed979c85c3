"""Weights & Biases as it is kept on disk: the `.wandb` file of a run, its folder, and `wandb-summary.json`.

A `.wandb` file is LevelDB's log: records in chunks, chunks in blocks of 32 KiB. The `wandb` package had a reader of it in Python
until it moved that into its own server, which gives no rows back; what is inside the records is left to its definitions.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from rldk.core.errors import ReadError, require
from rldk.core.jsonio import loads
from rldk.core.run_config import clean_settings
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.stores import FileProgress, first_bytes, list_folder, report
from rldk.ingest.run_settings import read_settings
from rldk.ingest.source import Source
from rldk.log.blocks import Progress, iter_blocks
from rldk.log.problems import LineProblems

__all__ = ["MAGIC", "RunInfo", "WandbAdapter", "iter_history", "iter_records", "plain_row"]

MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 32 << 10
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_SEEDS = {kind: zlib.crc32(bytes([kind])) for kind in (_FULL, _FIRST, _MIDDLE, _LAST)}
_MAX_RECORD_BYTES = 16 << 20
_CUT_OFF = "the end of the file is cut off: its writer died or is still writing"


def iter_records(pieces: Iterable[bytes], problems: LineProblems) -> Iterator[bytes]:
    """Give the whole records in order. A damaged chunk costs its record and the rest of its block."""
    parts: list[bytes] = []
    size = 0
    for number, (block, is_last) in enumerate(_blocks(pieces), 1):
        place = len(MAGIC) if number == 1 else 0
        while len(block) - place >= _CHUNK.size:
            check, length, kind = _CHUNK.unpack_from(block, place)
            start, end = place + _CHUNK.size, place + _CHUNK.size + length
            if not check and not length and not kind:  # room that was never written to
                break
            if end > len(block) and is_last and kind in _SEEDS:
                problems.damage = problems.damage or _CUT_OFF
                return
            chunk = block[start:end]
            if kind not in _SEEDS or len(chunk) < length or zlib.crc32(chunk, _SEEDS[kind]) != check:
                problems.add(number, "a chunk of this block is damaged: the rest of the block was left out")
                parts, size = [], 0
                break
            place = end
            if kind in (_FULL, _FIRST):
                parts, size = [chunk], length
            elif parts:
                parts.append(chunk)
                size += length
                if size > _MAX_RECORD_BYTES:
                    problems.add(number, f"a record of more than {_MAX_RECORD_BYTES >> 20} MiB was left out")
                    parts, size = [], 0
            if kind in (_FULL, _LAST) and parts:
                yield b"".join(parts)
                parts, size = [], 0
        else:
            if is_last and place < len(block) and any(block[place:]):
                problems.damage = problems.damage or _CUT_OFF
    if parts:
        problems.damage = problems.damage or _CUT_OFF


def _blocks(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The content in blocks, and whether each is the last."""
    held = b""
    for piece in pieces:
        held += piece
        whole = (len(held) - 1) // _BLOCK * _BLOCK
        for start in range(0, whole, _BLOCK):
            yield held[start : start + _BLOCK], False
        held = held[whole:]
    if held:
        yield held, True


_BY_KEY = itemgetter(0)
_MOST_SETTINGS, _MOST_KEPT = 40, 5_000


class RunInfo:
    """What the file says of its run: its id, its settings, and a sentence for people with its name, project and settings."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.settings: dict[str, Any] = {}
        self._names: list[str] = []
        self._known = False

    def take(self, run: Any) -> None:
        """Learn from the record of the run."""
        self.run_id = run.run_id or self.run_id
        for update in run.config.update:
            key = "/".join(update.nested_key) or update.key
            if key != "_wandb" and (key in self.settings or len(self.settings) < _MOST_KEPT):
                self.settings[key] = _parse(update.value_json)
        self._names = [run.display_name and f"named {run.display_name!r}", run.project and f"of the project {run.project!r}"]
        self._known = True

    @property
    def note(self) -> str:
        """What the file says of its run, for people; empty where it says nothing."""
        if not self._known:
            return ""
        plain = {key: value for key, value in clean_settings(self.settings).items() if isinstance(value, (str, int, float))}
        settings = dict(islice(plain.items(), _MOST_SETTINGS))
        said = ", ".join(f"{key}={value!s:.80}" for key, value in settings.items())
        return " ".join(filter(None, [f"W&B run {self.run_id}", *self._names])) + (f" with {said}" if said else "")


def iter_history(records: Iterable[bytes], info: RunInfo, problems: LineProblems) -> Iterator[dict[str, Any]]:
    """The rows of the history, their keys in the order of the alphabet: the file has them in none."""
    purpose = "Reading .wandb files"
    record_type = require("wandb.proto.wandb_internal_pb2", extra="trackers", purpose=purpose).Record
    decode_error = require("google.protobuf.message", extra="trackers", purpose=purpose).DecodeError
    for number, data in enumerate(records, 1):
        try:
            record = record_type.FromString(data)
        except decode_error:
            problems.add(number, "the record cannot be decoded")
            continue
        if record.HasField("history"):
            row = plain_row(_cells(record.history.item))
            if "_step" not in row and record.history.HasField("step"):
                row["_step"] = record.history.step.num
            row["run_id"] = info.run_id
            yield row
        elif record.HasField("run"):
            info.take(record.run)


def _cells(items: Any) -> list[tuple[str, Any]]:
    """Keys and values; all values of a row are parsed in one go where that works."""
    keys: list[str] = []
    texts: list[str] = []
    for item in items:
        keys.append("/".join(item.nested_key) or item.key)
        texts.append(item.value_json)
    values = _parse(f"[{','.join(texts)}]")
    if type(values) is not list or len(values) != len(keys):
        values = [_parse(text) for text in texts]
    return sorted(zip(keys, values, strict=True), key=_BY_KEY)


def plain_row(cells: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A row without lists, and without media (histograms, images, tables), which are marked with a `_type`."""
    row = {key: value for key, value in cells if not _is_media(value)}
    if media := tuple(key.removesuffix("_type") for key in row if key.endswith("/_type")):
        return {key: value for key, value in row.items() if not key.startswith(media)}
    return row


def _is_media(value: Any) -> bool:
    return type(value) is list or (type(value) is dict and "_type" in value)


def _parse(text: str) -> Any:
    """The value of a JSON text; `None` where it is not JSON."""
    try:
        return loads(text.encode("utf-8", "replace"))
    except ValueError:
        return None


_OWN_KEYS = ("_step", "_runtime", "_timestamp", "_wandb")
_MAX_SUMMARY_BYTES = 16 << 20
_RUN_FOLDER = re.compile(r"(?:offline-)?run-(\d{8}_\d{6})-(.+)")
_MOST_FOLDERS = 5_000


class WandbAdapter(Adapter):
    """Reads what W&B leaves on disk: the history of each run, or, where there is none, its last values."""

    name: ClassVar[str] = "wandb"
    title: ClassVar[str] = "W&B run files (.wandb, wandb-summary.json)"
    folders: ClassVar[bool] = True

    def can_handle(self) -> bool:
        if self.source.is_folder:
            found = bool(_files_of_runs(self.source.path))
            self.why = "a folder of W&B runs" if found else "a folder without W&B runs"
        elif self.source.head.startswith(MAGIC):
            found, self.why = True, "it begins like a .wandb file"
        else:
            found = _summary_of(self.source) is not None
            self.why = "the last values of a W&B run" if found else "neither a .wandb file nor a summary of W&B"
        return found

    def read(self) -> Iterator[Mapping[str, Any]]:
        files = _files_of_runs(self.source.path) if self.source.is_folder else [self.source.path]
        if not files:
            raise ReadError(f"No W&B run in {self.source.path}.")
        account = FileProgress(files, self.progress)
        for path in files:
            source = Source(path) if self.source.is_folder else self.source
            if source.head.startswith(MAGIC):
                yield from self._history(source, account.of(path))
            else:
                yield from self._last_values(source)

    def _history(self, source: Source, progress: Progress) -> Iterator[Mapping[str, Any]]:
        problems = LineProblems() if self.source.is_folder else self.problems
        info = RunInfo(_run_id(source.path))
        empty = True
        for row in iter_history(iter_records(iter_blocks(source.path, problems, progress), problems), info, problems):
            empty = False
            yield row
        if problems is not self.problems:
            report(self.problems, problems, source.path.name)
        if info.note:
            self.notes.append(info.note)
        self.settings[info.run_id] = info.settings or self._settings_file(source.path.parent / "files")
        summary = source.path.parent / "files" / "wandb-summary.json"
        if empty and summary.is_file():
            yield from self._last_values(Source(summary))

    def _last_values(self, source: Source) -> Iterator[Mapping[str, Any]]:
        row = _summary_of(source)
        if row is None:
            raise ReadError(f"{source.path} is not a W&B summary: expected an object with `_step`, `_runtime` or `_timestamp`.")
        run_id = _run_id(source.path)
        self.settings[run_id] = self._settings_file(source.path.parent)
        self.notes.append(f"W&B run {run_id}: only a summary, the last value of each metric, without its history")
        yield {**plain_row(sorted((key, value) for key, value in row.items() if key != "_wandb")), "run_id": run_id}

    def _settings_file(self, folder: Path) -> dict[str, Any]:
        """What `config.yaml` says, without W&B's own part."""
        return {
            key: value for key, value in read_settings(folder / "config.yaml").items() if key not in ("_wandb", "wandb_version")
        }


def _files_of_runs(folder: Path) -> list[Path]:
    """The file of each run in a run's own folder, or in W&B's folder of runs; its link to the latest is left out."""
    if own := _file_of_run(folder):
        return [own]
    inner = [Path(entry.path) for entry in list_folder(folder, _MOST_FOLDERS) if entry.is_dir(follow_symlinks=False)]
    runs = sorted((match[1], path) for path in inner if (match := _RUN_FOLDER.fullmatch(path.name)))
    return [found for _, path in runs if (found := _file_of_run(path)) is not None]


def _file_of_run(folder: Path) -> Path | None:
    """The history of the run whose folder this is, or else its summary; `None` if it is not the folder of a run."""
    files = [Path(entry.path) for entry in list_folder(folder, _MOST_FOLDERS) if entry.is_file()]
    logs = [path for path in files if path.suffix == ".wandb" and first_bytes(path, len(MAGIC)) == MAGIC]
    if len(logs) == 1 and all(".wandb" in path.name for path in files):
        return logs[0]
    summary = folder / "files" / "wandb-summary.json"
    return summary if not files and summary.is_file() and _summary_of(Source(summary)) is not None else None


def _summary_of(source: Source) -> dict[str, Any] | None:
    """The object of a `wandb-summary.json`: two or more of W&B's own keys, each with one value."""
    head = source.head
    marks = sum(f'"{key}"'.encode() in head for key in _OWN_KEYS)
    if marks < 2 or not head.lstrip().startswith(b"{") or source.path.stat().st_size > _MAX_SUMMARY_BYTES:
        return None
    try:
        row = source.document(LineProblems())
    except ReadError:
        return None
    if type(row) is not dict or sum(key in row for key in _OWN_KEYS) < 2:
        return None
    return None if any(type(row.get(key)) is list for key in _OWN_KEYS) else row


def _run_id(path: Path) -> str:
    """The run's id by the names W&B gives to its folder or file."""
    for name in (part.name for part in path.absolute().parents):
        if match := _RUN_FOLDER.fullmatch(name):
            return match[2]
    return path.name.removesuffix(".wandb").removeprefix("run-").split(".", 1)[0]
