"""Console tables `| key | value |` without sections, as OpenAI baselines prints them: each table is a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.core.catalog import is_measured
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console

__all__ = ["TableConsoleAdapter"]

_ROW = re.compile(rb"\|\s+(\S.*?)\s*\|\s+(\S+)\s*\|")
_MARK = re.compile(rb"^-{8,}\s*\n\|", re.MULTILINE)
_SECTION = re.compile(rb"^\|\s*\w+/\s*\|\s*\|", re.MULTILINE)  # those of Stable-Baselines3
_STEPS = ("misc/nupdates", "nupdates", "misc/total_timesteps", "total_timesteps", "steps", "TimestepsSoFar", "iteration", "step")
"""Rows that count, the most useful first: updates, then steps of the environment."""


class TableConsoleAdapter(Adapter):
    """Reads tables of two columns between lines of dashes; a table that is cut off or mixed with other output is left out."""

    name: ClassVar[str] = "table_console"
    title: ClassVar[str] = "console tables of two columns (OpenAI baselines)"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        self.why = "no tables of two columns"
        head = self.source.wide_head
        if not console.is_console(self.source) or _MARK.search(head) is None or _SECTION.search(head) is not None:
            return False
        keys = [match[1].decode("utf-8", "replace") for match in _ROW.finditer(head)]
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
                match = _ROW.fullmatch(line)
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
        step = next((table[key] for key in _STEPS if table.get(key) is not None), None)
        row = {key: value for key, value in table.items() if value is not None and key != "step"}
        return row if step is None else {"step": step, **row}
