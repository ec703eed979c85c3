"""Text as a file, a terminal or a page can hold it."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["clean", "did_you_mean", "writable"]

_CONTROL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)


def writable(text: str) -> str:
    """The text with each half of a surrogate pair, which JSON and names of files may hold and no encoder writes, as `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def clean(text: object, most: int = 200) -> str:
    """Text from a log as it may be shown: nothing that a terminal would obey or could not write, and not endless."""
    given = str(text)
    given = given if len(given) <= 50 * most else given[: 50 * most]  # a megabyte is not searched for what is cut off anyway
    shown = _CONTROL.sub("", writable(given)).replace("\n", " ")
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def did_you_mean(name: object, known: Iterable[str], most: int = 3) -> str:
    """` Did you mean a or b?` of the known names that a wrong one is near to; nothing where it is near to none."""
    import difflib  # slow to import, and only wanted for a mistake

    near = difflib.get_close_matches(str(name), list(known), n=most)
    return f" Did you mean {' or '.join(near)}?" if near else ""
