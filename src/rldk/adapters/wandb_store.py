"""Weights & Biases as it is kept on disk: the `.wandb` file of a run, its folder, and `wandb-summary.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats.folders import FileProgress, first_bytes, list_folder, report
from rldk.adapters.formats.settings import read_settings
from rldk.adapters.formats.wandb_history import RunInfo, iter_history, plain_row
from rldk.adapters.formats.wandb_records import MAGIC, iter_records
from rldk.adapters.source import Source
from rldk.core.errors import ReadError
from rldk.log.blocks import Progress, iter_blocks
from rldk.log.problems import LineProblems

__all__ = ["WandbAdapter"]

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
            raise ReadError(f"{source.path} is no summary of W&B: an object with `_step`, `_runtime` or `_timestamp`.")
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
    """The history of the run whose folder this is, or else its summary; `None` if it is no folder of a run."""
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
