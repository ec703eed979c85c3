"""Text as a file or a terminal can hold it."""

from __future__ import annotations

__all__ = ["writable"]


def writable(text: str) -> str:
    """The text with each half of a surrogate pair, which JSON and names of files may hold and no encoder writes, as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
