"""Search by regular expressions of RE2, which Arrow brings: no expression takes longer than the text is long."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as arrow
import pyarrow.compute as compute

__all__ = ["matching"]


def matching(texts: Sequence[str], pattern: str) -> tuple[list[bool], str]:
    """Which texts contain a match, upper and lower case alike; and what is wrong with the pattern, if so.

    Without a pattern, and with one that is wrong, all texts match.
    """
    if not pattern.strip():
        return [True] * len(texts), ""
    try:
        found = compute.match_substring_regex(arrow.array(texts, arrow.string()), pattern.strip(), ignore_case=True)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, UnicodeError) as error:
        said = str(error).split("\n")[0].removeprefix("Invalid regular expression: ")
        hint = " Look-around and back-references cannot be used." if "(?" in pattern or "\\" in pattern else ""
        signs = "Write \\. \\[ \\( \\* for these signs themselves."
        return [True] * len(texts), f"This is not a regular expression: {said}.{hint} {signs}"
    return found.to_pylist(), ""
