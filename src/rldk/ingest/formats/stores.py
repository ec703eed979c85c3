"""What the stores of trackers have in common: folders that may be large, and single values that become rows."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems

__all__ = ["FileProgress", "Point", "first_bytes", "gather", "list_folder", "report", "unique_names", "walk_files"]

MOST_ENTRIES = 100_000


def list_folder(folder: Path, most: int = MOST_ENTRIES) -> list[os.DirEntry[str]]:
    """What is in a folder, by name, without links that lead nowhere; nothing where it cannot be looked into."""
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_symlink() or os.path.exists(entry.path):  # noqa: PTH110  a loop of links raises otherwise
                    found.append(entry)
                if len(found) >= most:
                    break
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)


def walk_files(root: Path, *, depth: int, most: int = MOST_ENTRIES) -> Iterator[Path]:
    """The files of a folder and of the folders in it, nearest first; ends after `most` entries.

    Hidden folders are left out, and links to folders are not followed: they may lead in a circle.
    """
    waiting = deque([(root, 0)])
    seen = 0
    while waiting and seen < most:
        folder, level = waiting.popleft()
        for entry in list_folder(folder, most - seen):
            seen += 1
            if entry.is_dir(follow_symlinks=False):
                if level < depth and not entry.name.startswith("."):
                    waiting.append((Path(entry.path), level + 1))
            elif entry.is_file():
                yield Path(entry.path)


def first_bytes(path: Path, size: int) -> bytes:
    """The beginning of a file; empty where it cannot be read, or is a pipe, which would be waited for."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


class FileProgress:
    """One account of progress over several files that are read one after the other."""

    def __init__(self, paths: list[Path], progress: Progress | None) -> None:
        self._progress = progress
        try:
            self._sizes = {path: path.stat().st_size for path in paths}
        except OSError as error:
            raise ReadError(f"{error.filename} cannot be read: {error.strerror}.") from error
        self._total = sum(self._sizes.values())
        self._done = 0

    def of(self, path: Path) -> Progress:
        """To be called with the bytes of this file; the files before it count as read."""
        before = self._done
        self._done += self._sizes.get(path, 0)
        return lambda consumed, _: self._report(before + consumed)

    def _report(self, consumed: int) -> None:
        if self._progress is not None:
            self._progress(min(consumed, self._total), self._total)


def report(problems: LineProblems, found: LineProblems, name: str) -> None:
    """Add what one of several files had wrong to the account of all of them."""
    for number, reason in found.skipped:
        problems.add(number, f"{name}: {reason}")
    problems.total += found.total - len(found.skipped)
    if found.damage:
        said = f"{name}: {found.damage}"
        problems.damage = f"{problems.damage}; {said}" if problems.damage else said


Point = tuple[int, float, str, float]
"""A step, the time in seconds, a key and its value."""

_OWN = frozenset({"step", "wall_time", "run_id"})
_MAX_KEYS = 20_000  # of a row; further ones make another row of the same step


def gather(points: Iterable[Point], run_id: str | None) -> Iterator[dict[str, Any]]:
    """Rows of the points in their order: those of one step that follow each other are one row, until a key comes again.

    What is logged under the name of an axis gives way to the axis that the store itself keeps.
    """
    row: dict[str, Any] = {}
    at: int | None = None
    for step, time, key, value in points:
        if step != at or key in row or len(row) >= _MAX_KEYS:
            if key in _OWN:
                continue
            if row:
                yield row
            row = {"step": step, "wall_time": time}
            if run_id is not None:
                row["run_id"] = run_id
            at = step
        row[key] = value
    if row:
        yield row


def unique_names(names: dict[str, str | None]) -> dict[str, str]:
    """What to call each run, by its id: its name, with the id where several have that name, or else the id alone."""
    given = Counter(name for name in names.values() if name)
    return {key: f"{name} ({key[:8]})" if name and given[name] > 1 else name or key for key, name in names.items()}
