"""Comma-, tab- or semicolon-separated text with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import Any

from rldk.adapters.source import Source
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems

__all__ = ["header_of", "iter_rows"]

_DELIMITERS = ",\t;|"


def header_of(source: Source) -> tuple[list[str], str] | None:
    """The names in the header and the delimiter, if the file looks like a table: two columns or more, in every line."""
    lines = [line.decode("utf-8", "replace") for line in source.head_lines[:20]]
    while lines and lines[0].startswith("#"):
        lines.pop(0)
    if not lines or lines[0].lstrip()[:1] in ("{", "["):
        return None
    for delimiter in _DELIMITERS:
        try:
            names, *rows = (next(csv.reader([line], delimiter=delimiter), []) for line in lines)
        except csv.Error:
            return None  # a carriage return within a line: a console's progress bar
        if len(names) < 2 or any(_is_number(name) for name in names) or len(set(names)) < len(names):
            continue
        if all(len(row) == len(names) for row in rows[:-1]):
            return [name.strip() for name in names], delimiter
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def iter_rows(
    source: Source, names: list[str], delimiter: str, problems: LineProblems, progress: Progress | None = None
) -> Iterator[Mapping[str, Any]]:
    """Rows by the header's names; an empty cell was not logged, and a row of another length is counted and located."""
    numbered = source.lines(problems, progress)
    position = 0

    def texts() -> Iterator[str]:
        nonlocal position
        for position, line in numbered:
            if not line.startswith(b"#") or position > 1:
                yield line.decode("utf-8", "replace") + "\n"

    rows = csv.reader(texts(), delimiter=delimiter)
    next(rows, None)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problems.add(position, str(error))
            continue
        if len(row) != len(names):
            problems.add(position, f"{len(row)} cells where the header has {len(names)}")
            continue
        yield {name: cell for name, cell in zip(names, row, strict=True) if cell not in ("", "NA", "null", "None")}
