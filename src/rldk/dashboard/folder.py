"""The runs of a folder, found by the names of its files alone, and nothing outside of it."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from rldk.core.errors import ReadError

__all__ = ["Folder", "Listing", "RunFile"]

_MOST_FILES = 50_000
_MOST_RUNS = 5_000
_MOST_DEPTH = 8
_NOT_SEARCHED = frozenset({"__pycache__", "node_modules", "site-packages"})
_COMPANION = re.compile(
    r"_(metrics|comprehensive_metrics|checkpoint_summary)\.csv$|_(alerts|final_report|health_summary|comprehensive_metrics"
    r"|comprehensive_analysis(_step_-?\d+)?)\.json$|_samples\.jsonl$"
)
_LOG = re.compile(
    r"\.(jsonl|ndjson|csv|tsv|parquet|log|out|wandb)(\.gz|\.zst)?$|^trainer_state\.json$|(log|metrics|history|events).*\.json$"
    r"|^events\.out\.tfevents\.",
    re.IGNORECASE,
)
_EVENTS = re.compile(r"(_?events)?\.(jsonl|ndjson)$", re.IGNORECASE)


@dataclass(slots=True)
class RunFile:
    """A file that may hold a run: its path below the folder, what it is called, its size, and when it last changed."""

    key: str
    name: str
    size: int
    modified: float

    @property
    def is_followed(self) -> bool:
        """Whether it is read as it grows; others are read again when they have changed."""
        return _EVENTS.search(self.key) is not None


@dataclass(slots=True)
class Listing:
    """What is in the folder, the file that changed last first."""

    files: list[RunFile] = field(default_factory=list)
    problem: str = ""
    left_out: int = 0
    led_out: int = 0


class Folder:
    """A folder with runs. A link in it that leads out of it is not followed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()

    def list(self) -> Listing:
        """All files that may be runs; no file is opened for that."""
        listing = Listing()
        if not self.path.is_dir():
            listing.problem = "This folder does not exist yet. Runs appear here by themselves as soon as they begin in it."
            return listing
        try:
            os.scandir(self.path).close()
        except OSError as error:
            listing.problem = f"This folder cannot be read: {error.strerror}."
            return listing
        seen = 0
        for root, folders, names in os.walk(self.path):
            depth = len(Path(root).relative_to(self.path).parts)
            folders[:] = sorted(name for name in folders if name[:1] != "." and name not in _NOT_SEARCHED and depth < _MOST_DEPTH)
            for name in names:
                seen += 1
                if seen <= _MOST_FILES and name[:1] != "." and _LOG.search(name) and not _COMPANION.search(name):
                    self._add(listing, Path(root, name))
        listing.files.sort(key=lambda file: (-file.modified, file.key))
        listing.left_out = max(0, seen - _MOST_FILES) + max(0, len(listing.files) - _MOST_RUNS)
        del listing.files[_MOST_RUNS:]
        return listing

    def _add(self, listing: Listing, path: Path) -> None:
        try:
            known = path.stat()
            inside = not path.is_symlink() or self._is_inside(path)
        except OSError:
            return  # gone since, or a link to nothing
        if not stat.S_ISREG(known.st_mode):
            return
        if not inside:
            listing.led_out += 1
            return
        key = path.relative_to(self.path).as_posix()
        listing.files.append(RunFile(key, _name(key), known.st_size, known.st_mtime))

    def find(self, key: str) -> Path:
        """The file of a key that `list` gave; `ReadError` for anything else, whatever it is made of."""
        path = self.path.joinpath(*key.split("/")) if key and "\0" not in key else self.path
        if ".." in key.split("/") or path == self.path or Path(key).is_absolute() or not self._is_inside(path):
            raise ReadError("There is no such run in this folder.")
        return path

    def beside(self, key: str, ending: str) -> Path | None:
        """The file of that ending that belongs to a run, such as its `_alerts.json`; `None` where there is none."""
        path = self.find(key)
        stem = _EVENTS.sub("", path.name)
        for found in (path.with_name(f"{stem}{ending}"), path.with_name(ending.lstrip("_"))):
            if found.is_file() and self._is_inside(found):
                return found
        return None

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.path.resolve())
        except (OSError, RuntimeError):
            return False


def _name(key: str) -> str:
    """What a run is called before it is read: its path without what all of them end in."""
    stem = _EVENTS.sub("", key)
    return stem.removesuffix("/") or key
