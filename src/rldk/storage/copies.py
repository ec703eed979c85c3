"""From whatever a user names to paths on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rldk.storage.archives import unpack
from rldk.storage.places import OnBytes, is_archive, is_url
from rldk.storage.remote import copy_from
from rldk.storage.tracked import fetch_mlflow, fetch_wandb

__all__ = ["local_copies"]

_CLIENTS: dict[str, Callable[[str], Path]] = {"wandb": fetch_wandb, "mlflow": fetch_mlflow}


def local_copies(item: str | os.PathLike[str], on_bytes: OnBytes | None = None) -> Path:
    """The file or folder on this machine that holds what an address or an archive holds; any other path as it is."""
    if not is_url(item):
        path = Path(item).expanduser()
        return unpack(path) if is_archive(path) else path
    url = str(item)
    scheme = url.split("://", 1)[0]
    path = _CLIENTS[scheme](url) if scheme in _CLIENTS else copy_from(url, on_bytes)
    return unpack(path) if is_archive(path) else path
