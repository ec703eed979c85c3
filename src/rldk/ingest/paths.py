"""Which files a user means by a path, a folder, a glob or a list of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from rldk.core.errors import ReadError
from rldk.ingest.discovery import candidates, stamp_of
from rldk.ingest.source import why_not_readable
from rldk.storage.places import OnBytes, is_archive, is_url

__all__ = ["PathsLike", "expand", "size_of"]

PathsLike = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def expand(given: PathsLike, on_bytes: OnBytes | None = None) -> list[Path]:
    """The paths that are meant, each once, in the order given; a glob's matches are sorted.

    What is in object storage, on the web, in a tracker or in an archive is copied to this machine first; `on_bytes` is called
    with the bytes that were copied so far and those to copy in all.
    """
    items = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not items:
        raise ReadError("No path was given.")
    found: dict[Path, None] = {}
    for item in items:
        try:
            matches = [_copied(item, on_bytes)] if is_url(item) else [_copied(match) for match in _matches(item)]
        except (OSError, RuntimeError) as error:  # a name that is too long, a folder that may not be searched, an unknown ~user
            why = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise ReadError(f"{str(item)[:200]!r} cannot be read: {why}.") from error
        found.update(dict.fromkeys(matches))
    return list(found)


def _copied(item: str | os.PathLike[str], on_bytes: OnBytes | None = None) -> Path:
    """The path on this machine; what is elsewhere or in an archive is copied first."""
    if not is_url(item) and not is_archive(Path(item)):
        return Path(item)
    from rldk.storage.copies import local_copies

    return local_copies(item, on_bytes)


def _matches(item: str | os.PathLike[str]) -> list[Path]:
    path = Path(item).expanduser()
    if path.exists():
        return [path]
    if os.path.lexists(path):
        raise ReadError(f"{path} {why_not_readable(path)}")
    if not glob.has_magic(str(item)):
        raise ReadError(f"{path} does not exist.")
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207  an absolute pattern
    if not matches:
        raise ReadError(f"Nothing matches {str(item)!r}.")
    return matches


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of all files that are meant, for a progress bar; one that is gone by now has none."""
    found = (one for path in paths for one in (candidates(path) if path.is_dir() else [path]))
    return sum((stamp_of(one) or (0, 0))[0] for one in found)
