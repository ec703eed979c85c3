"""Dicts that a console prints over several lines, as `pprint` and `json.dumps(..., indent=2)` do: each becomes one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rldk.ingest.formats.console import plain_line

__all__ = ["has_spread_dicts", "joined"]

_BEGINS = re.compile(rb"""\{[ \t\r]*\n[^\n]*?["'][^"'\n]{1,200}["']: |\{["'][^"'\n]{1,200}["']: [^\n{}]*,[ \t\r]*\n""")
_OPENS = re.compile(rb"""\{(?:["'][^"']{1,200}["']: [^{}]*,)?$""")
_GOES_ON = re.compile(rb"""(?:["'][^"']{1,200}["']: [^{}]*)?(\}.*)?""")
_PREFIX = re.compile(rb"^\([^()]{0,200}pid=\d{1,20}[^()]{0,200}\)")
_MOST_LINES = 1000
_MOST_BYTES = 1 << 16  # of a line within a dict

Lines = Iterable[tuple[int, bytes]]


def has_spread_dicts(text: bytes) -> bool:
    """Whether a dict begins on one line and goes on with a key on the next."""
    return _BEGINS.search(text) is not None


def joined(lines: Lines) -> Iterator[tuple[int, bytes]]:
    """The lines, with those of one dict as one, which has the number of the first.

    Prefixes that Ray puts before each line are left out within a dict. Where a line does not belong to the dict that has
    begun, or the dict has no end, all lines stay as they are.
    """
    held: list[tuple[int, bytes]] = []
    for number, raw in lines:
        line = plain_line(raw)
        part = _PREFIX.sub(b"", line).strip() if len(line) <= _MOST_BYTES else b""
        if held and part and len(held) < _MOST_LINES and (match := _GOES_ON.fullmatch(part)):
            held.append((number, part))
            if match[1] is not None:
                yield held[0][0], b" ".join(text for _, text in held)
                held = []
            continue
        yield from held
        held = [(number, line.rstrip())] if part and _OPENS.search(part) else []
        if not held:
            yield number, line
    yield from held
