"""Console tables that are drawn with lines: pairs of key and value, one or several across, after a line with their step.

AReaL prints such a table for every step:

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

__all__ = ["BoxTableAdapter"]

_OPENS, _CLOSES, _BARS = "╒╓╔┌┏╭", "╘╙╚└┗╰", "│┃║"
_DRAWN = re.compile(f"[{_OPENS}{_CLOSES}{_BARS}├╞┝┠╟╠┣]")
_SPLIT = re.compile(f"[{_BARS}]")
_PAIR = re.compile(rb"\xe2\x94[\x82\x83] {0,9}[A-Za-z][^\n]{0,200}?\xe2\x94[\x82\x83] {0,200}[-+]?[\dni]")
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
        lines = console.iter_head(self.source, _PAIR)
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
