"""Which files a user means by a path, a folder, a glob or a list of them."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rldk.core.errors import ReadError

__all__ = ["PathsLike", "expand", "files_below", "size_of"]

PathsLike = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_BESIDE_A_LOG = re.compile(
    r"(?P<run>.+)_(?:metrics\.csv|alerts\.json|config\.json|final_report\.json|health_summary\.json|checkpoint_summary\.csv"
    r"|comprehensive_metrics\.(?:csv|json)|comprehensive_analysis(?:_step_\d+)?\.json)"
)
_NOT_SEARCHED = frozenset({"__pycache__", "node_modules", "site-packages"})


def expand(given: PathsLike) -> list[Path]:
    """The paths that are meant, each once, in the order given; a glob's matches are sorted."""
    items = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not items:
        raise ReadError("No path was given.")
    found: dict[Path, None] = {}
    for item in items:
        try:
            matches = _matches(item)
        except (OSError, RuntimeError) as error:  # a name that is too long, a folder that may not be searched, an unknown ~user
            why = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise ReadError(f"{str(item)[:200]!r} cannot be read: {why}.") from error
        found.update(dict.fromkeys(matches))
    return list(found)


def _matches(item: str | os.PathLike[str]) -> list[Path]:
    path = Path(item).expanduser()
    if path.exists():
        return [path]
    if not glob.has_magic(str(item)):
        raise ReadError(f"{path} does not exist.")
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207  an absolute pattern
    if not matches:
        raise ReadError(f"Nothing matches {str(item)!r}.")
    return matches


def files_below(folder: Path) -> Iterator[Path]:
    """The folder itself and all files below it, in order.

    Hidden folders, those of tools, and pipes are left out; so is what a monitor wrote beside its event log, which says all
    of it and more.
    """
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_SEARCHED)
        yield Path(root)
        logs = {name.removesuffix("_events.jsonl") for name in files if name.endswith("_events.jsonl")}
        for name in sorted(files):
            if (beside := _BESIDE_A_LOG.fullmatch(name)) and beside["run"] in logs:
                continue
            path = Path(root, name)
            if not name.startswith(".") and os.path.isfile(path):  # noqa: PTH113  `Path.is_file` raises where it may not look
                yield path


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of all files that are meant, for a progress bar; one that is gone by now has none."""
    files = (file for path in paths for file in (files_below(path) if path.is_dir() else [path]))
    total = 0
    for file in files:
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total
