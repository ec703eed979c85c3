"""Console tables of keys and values without sections: between lines of dashes, or drawn with lines.

OpenAI baselines prints a table of two columns for every update:

    ---------------------------
    | misc/nupdates | 1       |
    ---------------------------

AReaL prints one for every step, with several pairs in a line and the step before it:

    Epoch 1/2 Step 1/23 Train step 1/46 done.
    ╒════════════════════════════╤════════════╤════════════════════════════╤════════════╕
    │ ppo_actor/task_reward/avg  │ 5.0000e-01 │ ppo_actor/update/grad_norm │ 2.0000e+00 │
    ╘════════════════════════════╧════════════╧════════════════════════════╧════════════╛
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.core.catalog import is_measured
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console

__all__ = ["BoxTableAdapter", "TableConsoleAdapter"]

_DASHES_ROW = re.compile(rb"\|\s+(\S.*?)\s*\|\s+(\S+)\s*\|")
_DASHES = re.compile(rb"^-{8,}\s*\n\|", re.MULTILINE)
_SECTION = re.compile(rb"^\|\s*\w+/\s*\|\s*\|", re.MULTILINE)  # those of Stable-Baselines3
_COUNTING_ROWS = (
    "misc/nupdates", "nupdates", "misc/total_timesteps", "total_timesteps", "steps", "TimestepsSoFar", "iteration", "step",
)  # fmt: skip
"""Rows that count, the most useful first: updates, then steps of the environment."""


class TableConsoleAdapter(Adapter):
    """Reads tables of two columns between lines of dashes; a table that is cut off or mixed with other output is left out."""

    name: ClassVar[str] = "table_console"
    title: ClassVar[str] = "console tables of two columns (OpenAI baselines)"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        self.why = "no tables of two columns"
        head = self.source.wide_head
        if not console.is_console(self.source) or _DASHES.search(head) is None or _SECTION.search(head) is not None:
            return False
        keys = [match[1].decode("utf-8", "replace") for match in _DASHES_ROW.finditer(head)]
        known = [key for key in dict.fromkeys(keys) if is_measured(key)]
        self.why = f"tables of two columns with {', '.join(known[:4])}" if known else "tables without a known metric"
        return bool(known)

    def read(self) -> Iterator[Mapping[str, Any]]:
        table: dict[str, Any] | None = None
        opened = self.problems.last_row = 0
        for number, raw in self.source.lines(self.problems, self.progress):
            line = console.plain_line(raw).strip()
            if number == self.problems.unterminated:
                self.problems.add(number, "a line that may be cut off")
                table = None
            elif len(line) >= 8 and not line.strip(b"-"):
                if table:
                    self.problems.last_row = number
                    yield self._row(table)
                    table = None
                else:
                    table, opened = {}, number
            elif table is not None:
                match = _DASHES_ROW.fullmatch(line)
                if match is None:
                    if table:
                        self.problems.add(opened, "an incomplete table")
                    table = None
                else:
                    table[match[1].decode("utf-8", "replace")] = to_number(match[2].decode("utf-8", "replace"))
        if table:
            self.problems.add(opened, "a table without an end")

    @staticmethod
    def _row(table: dict[str, Any]) -> dict[str, Any]:
        step = next((table[key] for key in _COUNTING_ROWS if table.get(key) is not None), None)
        row = {key: value for key, value in table.items() if value is not None and key != "step"}
        return row if step is None else {"step": step, **row}


_OPENS, _CLOSES, _BARS = "╒╓╔┌┏╭", "╘╙╚└┗╰", "│┃║"
_DRAWN = re.compile(f"[{_OPENS}{_CLOSES}{_BARS}├╞┝┠╟╠┣]")
_SPLIT = re.compile(f"[{_BARS}]")
_BOX_PAIR = re.compile(rb"\xe2\x94[\x82\x83] {0,9}[A-Za-z][^\n]{0,200}?\xe2\x94[\x82\x83] {0,200}[-+]?[\dni]")
_STEP = re.compile(r"\b(?:step|iteration|iter|update)[ :=#]*(\d+)", re.IGNORECASE)
_OF_ALL = re.compile(r"\b(?:train(?:ing)?|global)[ _-]?(?:step|iteration|iter|update)[ :=#]*(\d+)", re.IGNORECASE)


class BoxTableAdapter(Adapter):
    """Reads tables of pairs between lines that are drawn; one whose end is missing is left out."""

    name: ClassVar[str] = "box_tables"
    title: ClassVar[str] = "console tables that are drawn with lines (AReaL)"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        self.why = "no tables that are drawn with lines"
        if not console.is_console(self.source):
            return False
        lines = console.iter_head(self.source, _BOX_PAIR)
        pairs = (_pairs(line.decode("utf-8", "replace")) for line in lines)
        found = next((known for row in pairs if (known := [key for key, _ in row if is_measured(key)])), [])
        if found:
            self.why = f"tables that are drawn with lines, with {', '.join(found[:4])}"
        return bool(found)

    def read(self) -> Iterator[Mapping[str, Any]]:
        table: dict[str, float] = {}
        step: int | None = None
        last, opened = -1, 0
        for number, raw in self.source.lines(self.problems, self.progress):
            text = console.plain_line(raw).decode("utf-8", "replace")
            drawn = _DRAWN.search(text)
            if drawn is None:
                step = _step_of(text, step)
            elif drawn[0] in _OPENS:
                if table:
                    self.problems.add(opened, "a table without an end")
                table, opened = {}, number
            elif drawn[0] in _CLOSES:
                if table:
                    last = step if step is not None and step > last else last + 1
                    yield {"step": last, **table}
                table, step = {}, None
            elif number != self.problems.unterminated:
                table.update(_pairs(text))
        if table:
            self.problems.add(opened, "a table without an end")


def _pairs(text: str) -> list[tuple[str, float]]:
    """The keys and numbers of a line, one after the other."""
    cells = [cell.strip() for cell in _SPLIT.split(text)[1:-1]]
    pairs = zip(cells[::2], cells[1::2], strict=False)
    return [(key, number) for key, value in pairs if key and (number := to_number(value)) is not None]


def _step_of(text: str, before: int | None) -> int | None:
    """The step that a line says, that of the whole training first; else the one that was said before."""
    match = _OF_ALL.search(text) or _STEP.search(text)
    return int(match[1]) if match else before
