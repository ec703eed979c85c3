"""What happens to files: cut off, mixed with other output, or something else altogether."""

from __future__ import annotations

__all__ = ["GARBAGE", "ODD_FILES", "cuts"]

_MOST_CUTS = 120
_ENDS = 25

ODD_FILES = {
    "an empty file": b"",
    "blank lines": b"\n\n \n\t\n",
    "zeros": bytes(3000),
    "bytes that are no text": bytes(range(256)) * 20,
    "text in no encoding": b"\xff\xfe\xfd" * 500,
    "prose": b"It was a bright cold day in April, and the clocks were striking thirteen.\n" * 20,
    "a word without end": b"x" * 100_000,
    "brackets without end": b"[" * 50_000,
    "braces without end": b'{"a":' * 20_000,
    "commas": b",,,\n" * 200,
    "a gzip header and no more": b"\x1f\x8b\x08\x00",
    "a SQLite header and no more": b"SQLite format 3\x00",
    "an empty JSON object": b"{}\n",
    "an empty JSON list": b"[]\n",
    "a JSON number": b"7\n",
    "null": b"null\n",
}
"""Files that are no log, by what they are."""

GARBAGE = (
    b"",
    b"Traceback (most recent call last):",
    b"\x00\xff\xfe\x1b[31m\x08",
    b"{",
    b"}",
    b'{"torn": ',
    b"{'torn': ",
    b"]",
    b"<html>",
    "─".encode() * 200,
    b"x" * 5000,
    b"nothing to see here, move along",
)
"""Lines that find their way into a log and say nothing."""


def cuts(content: bytes) -> list[int]:
    """Where to cut a file off: everywhere if it is short, else in some hundred places, and everywhere near its ends."""
    size = len(content)
    near = {*range(min(_ENDS, size)), *range(max(0, size - _ENDS), size)}
    return sorted(near | set(range(0, size, max(1, size // _MOST_CUTS))))
