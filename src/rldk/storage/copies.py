"""From whatever a user names to paths on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rldk.storage.archives import unpack
from rldk.storage.cache import make_room, use
from rldk.storage.places import OnBytes, is_archive, is_url, local_path
from rldk.storage.remote import Wanted, copy_from, may_be_log
from rldk.storage.tracked import fetch_mlflow, fetch_wandb

__all__ = ["local_copies"]

_CLIENTS: dict[str, Callable[[str], Path]] = {"wandb": fetch_wandb, "mlflow": fetch_mlflow}


def local_copies(
    item: str | os.PathLike[str], on_bytes: OnBytes | None = None, wanted: Wanted = may_be_log, kind: str = "logs"
) -> Path:
    """The file or folder on this machine that holds what an address or an archive holds; any other path as it is.

    Of a folder in a store only those files are copied that are `wanted`, by default what may be a log.
    """
    if not is_url(item):
        path = Path(item).expanduser()
        return unpack(path) if is_archive(path) else path
    url = str(item)
    scheme = url.split("://", 1)[0]
    path = _fetched(scheme, url) if scheme in _CLIENTS else copy_from(url, on_bytes, wanted, kind)
    return unpack(path) if is_archive(path) else path


def _fetched(scheme: str, url: str) -> Path:
    """What the client of a tracker fetches."""
    use(local_path(url))
    make_room()
    return _CLIENTS[scheme](url)
