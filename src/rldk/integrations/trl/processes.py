"""The processes of a distributed run: all of them probe, and agree on what the main one writes."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["any_of", "from_main", "gathered", "world_size"]


def world_size() -> int:
    """How many processes train together."""
    dist = sys.modules.get("torch.distributed")  # not imported, so not initialised
    return int(dist.get_world_size()) if dist is not None and dist.is_available() and dist.is_initialized() else 1


def gathered(value: Any) -> list[Any]:
    """The values of all processes, in all of them. Every process must call this at the same point."""
    size = world_size()
    if size == 1:
        return [value]
    import torch.distributed as dist

    every: list[Any] = [None] * size
    dist.all_gather_object(every, value)
    return every


def from_main(value: Any) -> Any:
    """The value of the main process, in all of them. Every process must call this at the same point."""
    if world_size() == 1:
        return value
    import torch.distributed as dist

    held = [value]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def any_of(flag: bool) -> bool:
    """Whether this is true in any process. Every process must call this at the same point."""
    return any(gathered(flag))
