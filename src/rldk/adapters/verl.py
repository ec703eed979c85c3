"""verl: the console line `step:7 - actor/pg_loss:0.1 - …`, and the JSON lines of its file logger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, jsonl

__all__ = ["VerlAdapter"]

_STEP = re.compile(rb"(?:^|[\s)\]])step:(\d+) - (?=\S+?:)")
_WRAPPED = re.compile(r"(.*?):(?:(?:np|numpy|torch)\.\w+|tensor|array)\(([^,()]*)(?:,.*)?\)")


class VerlAdapter(Adapter):
    """Reads verl's console, whatever stands before `step:`, and its `{"step": 1, "data": {…}}` lines.

    A line that ends without its newline may end within a number: its last value is left out, and said to be.
    """

    name: ClassVar[str] = "verl"
    title: ClassVar[str] = "verl console output or file logger"
    framework: ClassVar[str | None] = "verl"

    def can_handle(self) -> bool:
        self._layout = self._look()
        return bool(self._layout)

    def _look(self) -> str:
        self.why = "no line `step:N - key:value - …`"
        if not console.is_text(self.source):
            return ""
        if jsonl.looks_like_json_lines(self.source):
            found = any(_is_wrapped(row) for row in self.source.head_objects[:20])
            self.why = f"{'lines' if found else 'no lines'} with `step` and an object `data`"
            return "json" if found else ""
        for line in console.iter_head(self.source, re.compile(rb"step:\d+ - ")):
            if _STEP.search(line):
                self.why = "lines `step:N - key:value - …`"
                return "console"
        return ""

    def read(self) -> Iterator[Mapping[str, Any]]:
        layout = getattr(self, "_layout", "") or self._look()
        if layout == "json":
            for row in jsonl.iter_rows(self.source, self.problems, self.progress):
                data = row.get("data")
                yield {**data, "step": row.get("step")} if type(data) is dict else row
            return
        for number, line in self.source.lines(self.problems, self.progress):
            if b"step:" not in line:
                continue
            line = console.strip_colours(line)
            match = _STEP.search(line)
            if match is not None:
                yield self._row(number, line, match)

    def _row(self, number: int, line: bytes, match: re.Match[bytes]) -> Mapping[str, Any]:
        cells = line[match.end() :].decode("utf-8", "replace").split(" - ")
        if number == self.problems.unterminated:
            lost = cells.pop().rpartition(":")[0]
            self.notes.append(f"line {number} has no newline: its last value ({lost[:80]}) may be cut and was left out")
        row: dict[str, Any] = {"step": int(match.group(1))}
        for cell in cells:
            key, _, value = cell.rpartition(":")
            try:
                row[key] = float(value)
            except ValueError:
                if (wrapped := _WRAPPED.fullmatch(cell.strip())) is not None:
                    row[wrapped.group(1)] = wrapped.group(2)
        return row


def _is_wrapped(row: Mapping[str, Any]) -> bool:
    data = row.get("data")
    return "step" in row and type(data) is dict and any("/" in key for key in data)
