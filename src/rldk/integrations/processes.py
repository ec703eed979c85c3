"""The processes of a distributed run: which one reports, and how the others agree with it."""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["any_of", "from_main", "gathered", "is_main_process", "world_size"]


def _distributed() -> Any:
    """`torch.distributed` where it is in use; what is not imported is not initialised."""
    dist = sys.modules.get("torch.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def is_main_process() -> bool:
    """Whether this is the process of a distributed training that reports: rank 0, or the only one."""
    dist = _distributed()
    return os.environ.get("RANK", "0") in ("", "0") if dist is None else int(dist.get_rank()) == 0


def world_size() -> int:
    """How many processes train together."""
    dist = _distributed()
    return 1 if dist is None else int(dist.get_world_size())


def gathered(value: Any) -> list[Any]:
    """The values of all processes, in all of them. Every process must call this at the same point."""
    if world_size() == 1:
        return [value]
    every: list[Any] = [None] * world_size()
    _distributed().all_gather_object(every, value)
    return every


def from_main(value: Any) -> Any:
    """The value of the main process, in all of them. Every process must call this at the same point."""
    if world_size() == 1:
        return value
    held = [value]
    _distributed().broadcast_object_list(held, src=0)
    return held[0]


def any_of(flag: bool) -> bool:
    """Whether this is true in any process. Every process must call this at the same point."""
    return any(gathered(flag))
