"""Tables as notebooks show them: HTML, and pipes in Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

__all__ = ["Table", "tables_in"]

Table = list[list[str]]
"""A table's rows of cells; the first has the names of the columns."""

_TABLE = re.compile(r"<table\b[^>]*>(.*?)(</table>|\Z)", re.DOTALL | re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^>]*>(.*?)(?:</tr>|\Z)", re.DOTALL | re.IGNORECASE)
_CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")


def tables_in(text: str) -> Iterator[tuple[Table, bool]]:
    """The tables of a text, those of HTML first, and whether each is whole or was cut off."""
    for table, end in _TABLE.findall(text):
        rows = [[_plain(cell) for cell in _CELL.findall(row)] for row in _ROW.findall(table)]
        yield [row for row in rows if row], bool(end)
    for rows in _of_pipes(text):
        yield rows, len(rows[-1]) == len(rows[0])


def _of_pipes(text: str) -> Iterator[Table]:
    """Lines of cells between pipes, under a line of names and a rule; a cell that no pipe ends is not whole."""
    table: Table = []
    before, closed = "", False
    for line in (*text.splitlines(), ""):
        line = line.strip()
        if table and "|" in line:
            cells = _cells(line)
            table.append(cells if line.endswith("|") or not closed else cells[:-1])
        elif table:
            yield table
            table = []
        elif "|" in before and _RULE.fullmatch(line):
            table, closed = [_cells(before)], before.endswith("|")
        before = line


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*`").strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]


def _plain(cell: str) -> str:
    return html.unescape(_TAG.sub("", cell)).strip()
