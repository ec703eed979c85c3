"""MLflow's file store: `<experiment>/<run>/metrics/<key>`, one line `timestamp value step` for each value."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from rldk.adapters.formats.folders import FileProgress, first_bytes, list_folder, report, walk_files
from rldk.adapters.formats.points import Point
from rldk.log.lines import iter_lines
from rldk.log.problems import LineProblems

__all__ = ["StoredRun", "find_runs", "points_of_run"]

_FIELD = re.compile(rb"^(\w+):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_META_BYTES = 64 << 10
_MOST_KEYS = 20_000
_AT_ONCE = 65_536
_MOST_PARAMS, _PARAM_BYTES = 1_000, 6_000


@dataclass(frozen=True)
class StoredRun:
    """The folder of a run, and what its `meta.yaml` says."""

    folder: Path
    run_id: str
    name: str | None
    started: int
    deleted: bool

    def metric_files(self) -> dict[str, Path]:
        """The file of each metric; a key with slashes is a path."""
        root = self.folder / "metrics"
        return {path.relative_to(root).as_posix(): path for path in walk_files(root, depth=8, most=_MOST_KEYS)}

    def params(self) -> dict[str, str]:
        """What the run was started with, as texts."""
        root = self.folder / "params"
        files = list(islice(walk_files(root, depth=8, most=_MOST_KEYS), _MOST_PARAMS)) if root.is_dir() else []
        return {
            path.relative_to(root).as_posix(): first_bytes(path, _PARAM_BYTES).decode("utf-8", "replace").strip()
            for path in files
        }


def find_runs(root: Path) -> Iterator[StoredRun]:
    """The runs of a store, of an experiment in it, or the one whose folder this is."""
    run = _read_run(root)
    if run is not None:
        yield run
        return
    for inner in [root] if (root / "meta.yaml").is_file() else _folders_with_meta(root):
        for folder in _folders_with_meta(inner):
            run = _read_run(folder)
            if run is not None:
                yield run


def _folders_with_meta(folder: Path) -> Iterator[Path]:
    for entry in list_folder(folder):
        if entry.is_dir() and (Path(entry.path) / "meta.yaml").is_file():
            yield Path(entry.path)


def _read_run(folder: Path) -> StoredRun | None:
    """The run of a folder; `None` where its `meta.yaml` is not that of a run."""
    text = first_bytes(folder / "meta.yaml", _META_BYTES)
    fields = {key.decode(): value.strip(b"'\"").decode("utf-8", "replace") for key, value in _FIELD.findall(text)}
    run_id = fields.get("run_id") or fields.get("run_uuid")
    if not run_id or not (folder / "metrics").is_dir():
        return None
    tag = first_bytes(folder / "tags" / "mlflow.runName", 250).decode("utf-8", "replace").strip()
    started = fields.get("start_time", "")
    return StoredRun(
        folder,
        run_id,
        fields.get("run_name") or tag or None,
        int(started) if started.isdecimal() else 0,
        fields.get("lifecycle_stage") == "deleted",
    )


def points_of_run(files: dict[str, Path], problems: LineProblems, account: FileProgress) -> Iterator[Point]:
    """The values of a run in the order in which they were logged; those of the same millisecond by their steps."""
    keys = list(files)
    which, steps, times, values = array("i"), array("q"), array("q"), array("d")
    for number, (key, path) in enumerate(files.items()):
        found = LineProblems()
        for line_number, line in iter_lines(path, problems=found, progress=account.of(path)):
            value = _parse(line)
            if value is None or line_number == found.unterminated:
                found.add(line_number, "not `timestamp value step`")
                continue
            which.append(number)
            times.append(value[0])
            values.append(value[1])
            steps.append(value[2])
        report(problems, found, key)
    logged, at = np.frombuffer(steps, dtype=np.int64), np.frombuffer(times, dtype=np.int64)
    columns = (logged, at / 1000, np.frombuffer(which, dtype=np.intc), np.frombuffer(values))
    order = np.lexsort((logged, at))
    for start in range(0, len(order), _AT_ONCE):
        part = order[start : start + _AT_ONCE]
        for step, time, number, value in zip(*(column[part].tolist() for column in columns), strict=True):
            yield step, time, keys[number], value


def _parse(line: bytes) -> tuple[int, float, int] | None:
    """Timestamp, value and step of a line; the step is missing in old stores, and a data set may follow it."""
    fields = line.split()
    if len(fields) not in (2, 3, 5):
        return None
    try:
        time, value, step = int(fields[0]), float(fields[1]), int(fields[2]) if len(fields) > 2 else 0
    except ValueError:
        return None
    return (time, value, step) if abs(time) < 2**62 and abs(step) < 2**62 else None
