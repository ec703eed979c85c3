"""Notebooks and pages with the table that a Hugging Face trainer shows in them: `.ipynb`, HTML, Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from rldk.core.catalog import is_measured
from rldk.core.catalog.axes import STEP_KEYS
from rldk.core.errors import ReadError
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.json_document import looks_like_document
from rldk.ingest.formats.text_table import EMPTY

__all__ = ["NotebookAdapter", "Table", "tables_in"]

Table = list[list[str]]
"""A table's rows of cells; the first has the names of the columns."""

_MARK = re.compile(r"<(/?)(table|tr|t[hd])\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_RULE = re.compile(r"\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")


def tables_in(text: str) -> Iterator[tuple[Table, bool]]:
    """The tables of a text, those of HTML first, and whether each is whole or was cut off."""
    yield from _of_marks(text)
    for rows in _of_pipes(text):
        yield rows, len(rows[-1]) == len(rows[0])


def _of_marks(text: str) -> Iterator[tuple[Table, bool]]:
    """The tables of HTML, in one pass: a row ends with its table, and a cell that no mark ends is incomplete."""
    table: Table | None = None
    row: list[str] | None = None
    cell = -1
    for mark in _MARK.finditer(text):
        closes, name = bool(mark[1]), mark[2].lower()
        if table is None:
            table = [] if name == "table" and not closes else None
        elif closes and name == "table":
            yield [*table, *([row] if row else [])], True
            table, row, cell = None, None, -1
        elif name == "tr" and closes != (row is None):
            table += [row] if row else []
            row, cell = None if closes else [], -1
        elif name in ("td", "th") and row is not None and closes == (cell >= 0):
            if closes:
                row.append(_plain(text[cell : mark.start()]))
            cell = -1 if closes else mark.end()
        if table is not None and len(table) > _MAX_ROWS:
            break
    if table is not None:
        yield [*table, *([row] if row else [])], False


def _of_pipes(text: str) -> Iterator[Table]:
    """Lines of cells between pipes, under a line of names and a rule; a cell that no pipe ends is incomplete."""
    table: Table = []
    before, closed = "", False
    for line in chain(text.splitlines(), ("",)):
        line = line.strip()
        if len(table) > _MAX_ROWS:
            continue
        if table and "|" in line:
            cells = _cells_of_line(line)
            table.append(cells if line.endswith("|") or not closed else cells[:-1])
        elif table:
            yield table
            table = []
        elif "|" in before and _RULE.fullmatch(line):
            table, closed = [_cells_of_line(before)], before.endswith("|")
        before = line


def _cells_of_line(line: str) -> list[str]:
    return [cell.strip().strip("*`").strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]


def _plain(cell: str) -> str:
    return html.unescape(_TAG.sub("", cell)).strip()


_CELLS = re.compile(rb'"cell_type"\s*:')
_STEP_COLUMN = re.compile(
    rb"<th[^<>]*>\s*(?:global_)?step\s*</th>"
    rb"|^[ \t]*(?:\|[ \t]*)?(?:global_)?step[ \t]*\|.*\n[ \t]*(?:\|[ \t]*)?:?--", re.I | re.M
)  # fmt: skip
_MAX_BYTES = 32 << 20
_MAX_ROWS = 500_000
_FEWEST_ROWS = 2


class NotebookAdapter(Adapter):
    """Reads the tables of steps in a notebook's outputs, or in a page; other tables are passed over.

    A notebook that was run twice has a table for each; where the steps restart, another run begins.
    """

    name: ClassVar[str] = "notebook"
    title: ClassVar[str] = "tables of a notebook (.ipynb) or a page (HTML, Markdown)"

    def can_handle(self) -> bool:
        self.why = "no notebook, and no table of steps"
        if not self.source.is_text:
            return False
        if not self._is_notebook() and not self._is_page():
            return False
        try:
            found = len(self._tables)
        except ReadError as error:  # a notebook that is cut off
            self.why = str(error)
            return True
        self.why = f"{found} table(s) with a step and metrics"
        return found > 0

    def _is_notebook(self) -> bool:
        return looks_like_document(self.source) and _CELLS.search(self.source.head) is not None

    def _is_page(self) -> bool:
        head = self.source.head
        if head.lstrip()[:1] in (b"{", b"[") or not (b"</th>" in head or (b"|" in head and b"--" in head)):
            return False
        return _STEP_COLUMN.search(head) is not None

    def read(self) -> Iterator[Mapping[str, Any]]:
        for step, names, rows in self._tables:
            for row in rows:
                cells = {name: number for name, cell in zip(names, row, strict=False) if (number := _number(cell)) is not None}
                if step in cells:
                    yield cells

    @cached_property
    def _tables(self) -> list[tuple[str, list[str], Table]]:
        """Each table that has steps and something measured: the name of its step, its names, its rows."""
        found = []
        for text in self._texts():
            for table, whole in tables_in(text):
                names = [_name(name) for name in table[0]] if table else []
                step = next((name for name in names if name in STEP_KEYS), None)
                if step is not None and any(map(is_measured, names)) and len(table) > _FEWEST_ROWS:
                    found.append((step, names, table[1:]))
                    if not whole:
                        self.notes.append("a table is cut off: what came after its last row is missing")
        return found

    def _texts(self) -> Iterator[str]:
        if not self._is_notebook():
            page = self.source.first(_MAX_BYTES + 1, self.problems)
            if len(page) > _MAX_BYTES:
                self.notes.append(f"the page is too large to be read as a whole: its first {_MAX_BYTES >> 20} MiB are judged")
            yield page[:_MAX_BYTES].decode("utf-8", "replace")
            return
        document = self.source.document(self.problems)
        cells = document.get("cells") if isinstance(document, dict) else None
        for cell in cells if isinstance(cells, list) else ():
            outputs = cell.get("outputs") if isinstance(cell, dict) else None
            for output in outputs if isinstance(outputs, list) else ():
                yield from _shown(output)


def _shown(output: Any) -> Iterator[str]:
    """What an output shows as a page."""
    data = output.get("data") if isinstance(output, dict) else None
    for kind in ("text/html", "text/markdown"):
        text = data.get(kind) if isinstance(data, dict) else None
        if isinstance(text, list):
            text = "".join(part for part in text if isinstance(part, str))
        if isinstance(text, str):
            yield text
            return


def _name(name: str) -> str:
    """A column's name; the trainer writes those of its own in words."""
    return {"Training Loss": "loss", "Validation Loss": "eval_loss", "Epoch": "epoch"}.get(name, name)


def _number(cell: str) -> float | None:
    """The number in a cell; the trainer writes `No log` where there is none."""
    return None if cell in EMPTY else to_number(cell.replace(",", ""))
