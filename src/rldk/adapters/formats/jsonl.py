"""JSON lines: one object a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.adapters.formats.fast_rows import FastRows
from rldk.adapters.source import Source
from rldk.core.jsonio import loads
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems
from rldk.runs.table import TableBuilder

__all__ = ["fill_rows", "iter_rows", "looks_like_json_lines"]


def looks_like_json_lines(source: Source) -> bool:
    """Whether at least half of the first lines are JSON objects (the head of a document of one line is not)."""
    lines = [line for line in source.head_lines[:200] if line.strip()]
    return bool(source.head_objects) and 2 * len(source.head_objects) >= len(lines)


def iter_rows(source: Source, problems: LineProblems, progress: Progress | None = None) -> Iterator[Mapping[str, Any]]:
    """Rows as they are, nested or not; a line that is no JSON object is counted and located."""
    for number, line in source.lines(problems, progress):
        if (row := _parse(number, line, problems)) is not None:
            yield row


def fill_rows(source: Source, builder: TableBuilder, problems: LineProblems, progress: Progress | None = None) -> None:
    """Put all rows into a table; those that look alike by the fast way."""
    FastRows(builder).fill(source, lambda number, line: _parse(number, line, problems), problems, progress)


def _parse(number: int, line: bytes, problems: LineProblems) -> Mapping[str, Any] | None:
    try:
        row = loads(line)
    except ValueError as error:
        problems.add(number, f"not JSON: {error}")
        return None
    if type(row) is dict:
        return row
    problems.add(number, f"a JSON {type(row).__name__} and not an object")
    return None
