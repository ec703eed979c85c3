"""What a console leaves in a file: colours, progress bars that overwrite themselves, time stamps before the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from rldk.core.catalog import is_measured
from rldk.ingest.formats.text_table import header_of
from rldk.ingest.source import Source
from rldk.runs.row_axes import parse_seconds

__all__ = ["MAX_ROWS", "is_console", "iter_head", "plain_line", "split_stamp"]

MAX_ROWS = 400_000
"""Rows that are read of a console: each takes several times as long as one of JSON, and no program prints so many."""

_MAX_NAMES = 4096  # of a table: all readers of consoles ask, and a known name comes before that
_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MINUS = "\u2212".encode()
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)
_FRACTION = re.compile(r"[.,](\d+)")


def is_console(source: Source) -> bool:
    """Whether a console could have written it: text that is neither JSON from the start nor a table with known names."""
    if not source.is_text or source.head.lstrip()[:2] in (b'{"', b"[{", b"[\n", b"{\n"):
        return False
    header = header_of(source)
    return header is None or not any(map(is_measured, header.names[:_MAX_NAMES]))


def iter_head(source: Source, mark: re.Pattern[bytes]) -> Iterator[bytes]:
    """The first lines in which `mark` is found, without colours.

    A program may print much before its first row, so this looks further than the first lines: see `Source.wide_head`.
    """
    text = source.wide_head
    end = 0
    for match in mark.finditer(text):
        if match.start() < end:
            continue
        start = text.rfind(b"\n", 0, match.start()) + 1
        end = text.find(b"\n", match.end())
        if end < 0:
            end = len(text)
        yield plain_line(text[start:end])


def plain_line(line: bytes) -> bytes:
    """The line without the codes that colour it or move the cursor, and with plain minus signs."""
    line = _COLOUR.sub(b"", line) if b"\x1b" in line else line
    return line.replace(_MINUS, b"-") if _MINUS in line else line


def split_stamp(text: str) -> tuple[float | None, str]:
    """The time stamp near the beginning of a line, in seconds since 1970, and the line without it."""
    match = _STAMP.search(text, 0, 64)
    if match is None:
        return None, text
    return _seconds(match.group()), text[: match.start()] + text[match.end() :]


def _seconds(stamp: str) -> float | None:
    fraction = _FRACTION.match(stamp, 19)
    zone = stamp[19:] if fraction is None else stamp[fraction.end() :]
    minute = _minute(f"{stamp[:16]}:00{zone}")
    if minute is None:
        return None
    return minute + int(stamp[17:19]) + (0.0 if fraction is None else float(f"0.{fraction.group(1)}"))


_minute = lru_cache(maxsize=256)(parse_seconds)
"""The beginning of a minute; remembered, since rows of one minute follow each other."""
