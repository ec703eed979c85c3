"""verl: the console line `step:7 - actor/pg_loss:0.1 - …`, and the JSON lines of its file logger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, jsonl
from rldk.adapters.formats.numbers import Forms
from rldk.adapters.formats.stretches import Line, Numbers, fill_lines, iter_lines, numbers_of
from rldk.runs.table import TableBuilder

__all__ = ["VerlAdapter"]

_STEP = re.compile(rb"(?:^|[\s)\]])step:(\d+) - (?=\S+?:)")
_TENSOR = re.compile(r":tensor\(([^(),]*)[^()]*\)")


@dataclass(frozen=True, slots=True)
class Form:
    """The keys of a line, in their order; the last value is the step."""

    keys: tuple[str, ...]

    def columns(self, values: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        found: dict[str, Any] = {"step": np.array(values[-1], dtype=np.float64)}
        for key, cells in zip(self.keys, values, strict=False):
            found[key] = _numbers(cells)
        return found


def _numbers(cells: tuple[str, ...]) -> Numbers:
    """Numbers, also where they stand in `np.float64(…)`."""
    return numbers_of(tuple(map(_unwrap, cells)) if cells[0].endswith(")") or cells[-1].endswith(")") else cells)


def _unwrap(cell: str) -> str:
    return cell[cell.find("(") + 1 : -1] if cell.endswith(")") else cell


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
        if not console.is_console(self.source):
            return ""
        for line in console.iter_head(self.source, re.compile(rb"step:\d+ - ")):
            if _STEP.search(line):
                self.why = "lines `step:N - key:value - …`"
                return "console"
        return ""

    def read(self) -> Iterator[Mapping[str, Any]]:
        if (getattr(self, "_layout", "") or self._look()) == "json":
            return self._unwrapped()
        return iter_lines(self._lines())

    def fill(self, builder: TableBuilder) -> None:
        if (getattr(self, "_layout", "") or self._look()) == "json":
            builder.add_all(self._unwrapped())
        else:
            fill_lines(builder, self._lines())

    def _unwrapped(self) -> Iterator[Mapping[str, Any]]:
        for row in jsonl.iter_rows(self.source, self.problems, self.progress):
            data = row.get("data")
            yield {**data, "step": row.get("step")} if type(data) is dict else row

    def _lines(self) -> Iterator[Line]:
        forms = Forms(Form)
        for number, line in self.source.lines(self.problems, self.progress):
            if b"step:" not in line:
                continue
            line = console.strip_colours(line)
            match = _STEP.search(line)
            if match is None:
                continue
            text = line[match.end() :].decode("utf-8", "replace")
            if " step:" in text:  # a row that was cut off, and the next one behind it
                self.problems.add(number, "two rows in one line: the first was left out")
                *_, match = _STEP.finditer(line)
                text = line[match.end() :].decode("utf-8", "replace")
            if "tensor(" in text:
                text = _TENSOR.sub(r":\1", text)
            cells = [cell.rpartition(":") for cell in text.split(" - ")]
            if number == self.problems.unterminated:
                lost = cells.pop()[0][:80]
                self.notes.append(f"line {number} has no newline: its last value ({lost}) may be cut and was left out")
            if cells:
                form = forms.get(tuple([key for key, _, _ in cells]))
                yield form, [*[value for _, _, value in cells], int(match.group(1))]


def _is_wrapped(row: Mapping[str, Any]) -> bool:
    data = row.get("data")
    return "step" in row and type(data) is dict and any("/" in key for key in data)
