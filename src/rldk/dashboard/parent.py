"""A process that ends when the one that started it is gone, however that went."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

__all__ = ["end_with_parent", "is_orphan"]

_LOOK = 0.25
_STARTED_BY = os.getppid()


def is_orphan() -> bool:
    """Whether the process that started this one is gone."""
    return os.getppid() != _STARTED_BY


def end_with_parent(pipe: BinaryIO, end: Callable[[], None]) -> None:
    """Call `end` once the parent has closed its side of `pipe`, or is gone.

    The pipe says it at once. It stays open, though, while a child that the parent forked (a data loader) still holds a
    copy of it, and so the parent's number is looked at as well.
    """
    once = threading.Lock()

    def ended() -> None:
        if once.acquire(blocking=False):
            end()

    def read() -> None:
        while pipe.read(1):
            pass
        ended()

    def look() -> None:
        while not is_orphan():
            time.sleep(_LOOK)
        ended()

    for watch in (read, look):
        threading.Thread(target=watch, daemon=True).start()
