"""Which files a user means by a path, a folder, a glob or a list of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rldk.core.errors import ReadError

__all__ = ["PathsLike", "expand", "files_below"]

PathsLike = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_NOT_SEARCHED = frozenset({"__pycache__", "node_modules", "site-packages"})


def expand(given: PathsLike) -> list[Path]:
    """The paths that are meant, each once, in the order given; a glob's matches are sorted."""
    items = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not items:
        raise ReadError("No path was given.")
    found: dict[Path, None] = {}
    for item in items:
        path = Path(item).expanduser()
        if path.exists() or not glob.has_magic(str(item)):
            matches = [path]
        else:
            matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207  an absolute pattern
            if not matches:
                raise ReadError(f"Nothing matches {str(item)!r}.")
        for match in matches:
            if not match.exists():
                raise ReadError(f"{match} does not exist.")
            found.setdefault(match, None)
    return list(found)


def files_below(folder: Path) -> Iterator[Path]:
    """The folder itself and all files below it, in order; hidden folders and those of tools are left out."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_SEARCHED)
        yield Path(root)
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(root, name)
