"""Which files and folders below a folder are logs of runs, in which order: one answer for scan, report, dashboard and watch.

`candidates` goes by names alone and opens nothing; `LogFinder` also looks at the beginning of each candidate, and remembers what
it saw. What a log holds is known only when it is read as a whole: `read_runs` passes over a file of settings, for example.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rldk.core.errors import RLDKError
from rldk.ingest.choose import ADAPTERS, choose
from rldk.ingest.source import Source

__all__ = ["FoundLog", "LogFinder", "candidates", "newest_first", "size_and_change"]

_BESIDE_A_LOG = re.compile(
    r"(?P<run>.+)_(?:metrics\.csv|alerts\.json|config\.json|final_report\.json|health_summary\.json|checkpoint_summary\.csv"
    r"|samples\.jsonl|comprehensive_metrics\.(?:csv|json)|comprehensive_analysis(?:_step_-?\d+)?\.json)"
)
_OWN_FILES = frozenset({"rldk_acks.json"})
_TOOL_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_NOT_LOGS = frozenset({
    # source files
    ".py", ".pyi", ".pyx", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".rs", ".js", ".ts", ".jsx", ".tsx", ".java",
    ".rb", ".lua", ".sh", ".bash", ".zsh", ".ps1", ".sql", ".r", ".jl",
    # pages
    ".md", ".rst", ".html", ".htm", ".css", ".tex", ".bib", ".pdf", ".docx",
    # settings of tools
    ".toml", ".cfg", ".ini", ".lock", ".patch", ".diff",
})  # fmt: skip
"""Endings of files that are not logs, whatever they hold: a test or a page may well quote a log. Named by itself, such a file is
still read."""


@dataclass(frozen=True, slots=True)
class FoundLog:
    """A log of runs: a file, or a folder that is one log; the adapter that reads it, its size and when it last changed."""

    path: Path
    adapter: str
    size: int
    modified: float


def candidates(folder: Path, hint: str | None = None) -> Iterator[Path]:
    """What may be a log below a folder, in the order of the paths: files, and folders that are one log by themselves.

    Left out are hidden files and folders, folders of tools, pipes, source files and documentation, and what a monitor wrote
    beside its event log, which says all of it and more. With a `hint`, only folders that this adapter reads are one log.
    """
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _TOOL_FOLDERS)
        here = Path(root)
        if _is_one_log(here, hint):
            folders.clear()
            yield here
            continue
        logs = {name.removesuffix("_events.jsonl") for name in files if name.endswith("_events.jsonl")}
        for name in sorted(files):
            if name in _OWN_FILES or name.startswith(".") or os.path.splitext(name)[1].lower() in _NOT_LOGS:  # noqa: PTH122
                continue
            if (beside := _BESIDE_A_LOG.fullmatch(name)) and beside["run"] in logs:
                continue
            if os.path.isfile(path := here / name):  # noqa: PTH113  `Path.is_file` raises where it may not look
                yield path


def _is_one_log(folder: Path, hint: str | None) -> bool:
    return any(kind.folders and hint in (None, kind.name) and kind(folder).can_handle() for kind in ADAPTERS)


def newest_first(logs: Iterable[FoundLog]) -> list[FoundLog]:
    """The log that changed last comes first."""
    return sorted(logs, key=lambda log: (-log.modified, log.path))


class LogFinder:
    """Finds the logs of a folder again and again; a file that has not changed since is not opened again."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.pending = 0
        self._known: dict[Path, tuple[int, int, str | None]] = {}

    def find(self, seconds: float = math.inf) -> list[FoundLog]:
        """All logs that exist now, in the order of the paths.

        After so many seconds no further file is opened: `pending` counts those left for the next call.
        """
        end = time.monotonic() + seconds
        found, known = [], {}
        self.pending = 0
        for path in candidates(self.folder):
            try:
                size, changed = size_and_change(path)
            except OSError:
                continue  # gone since, or a link to nothing
            seen = self._known.get(path)
            if seen is None or seen[:2] != (size, changed):
                if time.monotonic() > end and seen is None:
                    self.pending += 1
                    continue
                seen = (size, changed, _adapter_of(path))
            known[path] = seen
            if seen[2] is not None:
                found.append(FoundLog(path, seen[2], size, changed / 1e9))
        self._known = known
        return found


def size_and_change(path: Path) -> tuple[int, int]:
    """Bytes and the time of the last change, in nanoseconds; of a folder, those of all files in it."""
    if not path.is_dir():
        known = path.stat()
        return known.st_size, known.st_mtime_ns
    stats = [one.stat() for one in path.rglob("*") if one.is_file()]
    return sum(one.st_size for one in stats), max((one.st_mtime_ns for one in stats), default=0)


def _adapter_of(path: Path) -> str | None:
    try:
        return choose(Source(path)).name
    except (RLDKError, OSError):
        return None
