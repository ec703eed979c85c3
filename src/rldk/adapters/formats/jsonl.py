"""JSON lines: one object a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.adapters.formats.flat import flatten
from rldk.adapters.source import Source
from rldk.core.jsonio import loads
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems

__all__ = ["iter_rows", "looks_like_json_lines"]


def looks_like_json_lines(source: Source) -> bool:
    """Whether at least half of the first lines are JSON objects (the head of a document of one line is not)."""
    lines = [line for line in source.head_lines[:200] if line.strip()]
    return bool(source.head_objects) and 2 * len(source.head_objects) >= len(lines)


def iter_rows(source: Source, problems: LineProblems, progress: Progress | None = None) -> Iterator[Mapping[str, Any]]:
    """Flat rows; a line that is no JSON object is counted and located."""
    for number, line in source.lines(problems, progress):
        try:
            row = loads(line)
        except ValueError as error:
            problems.add(number, f"not JSON: {error}")
            continue
        if type(row) is dict:
            yield flatten(row)
        else:
            problems.add(number, f"a JSON {type(row).__name__} and not an object")
