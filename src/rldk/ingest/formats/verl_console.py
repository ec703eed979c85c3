"""verl: the console line `step:7 - actor/pg_loss:0.1 - …`, and the JSON lines of its file logger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console, json_lines
from rldk.ingest.formats.number_lines import Forms, Line, fill_lines, numbers_of
from rldk.runs.table import TableBuilder

__all__ = ["VerlAdapter"]

_STEP = re.compile(rb"(?:^|[\s)\]])step:\d+ - \S+?:")
_WRAPPER = r"(?:(?:(?:np|numpy|torch)\.\w+|tensor|array)\()?"
_VALUE = re.compile(rf"(:{_WRAPPER})([-+.\d][-+.\deE]*|[-+]?(?:nan|inf))(?=\)|,| - |\s*$)", re.ASCII)
_BEFORE_STEP = re.compile(r"(?:^|[\s)\]])step:")
_KEY = re.compile(rf"(?:\)|,[^)]*\))? - (\S.*?):{_WRAPPER}")
_MAX_BYTES = 1 << 20  # no row is longer


@dataclass(frozen=True, slots=True)
class Form:
    """Which value of a line is the step, and the keys of those that follow it."""

    step: int
    cells: tuple[tuple[int, str], ...]

    def columns(self, values: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        found: dict[str, Any] = {"step": numbers_of(values[self.step])}
        for position, key in self.cells:
            found[key] = numbers_of(values[position])
        return found


def split_values(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The values of a line, and the words before, between and after them; a number within a key is not a value."""
    parts = _VALUE.split(text)
    return parts[2::3], (*map(str.__add__, parts[:-1:3], parts[1::3]), parts[-1])


def form_of(words: tuple[str, ...]) -> Form | None:
    """What the values between these words are; of two rows in one line (the first of them cut off) it is the second."""
    step = max((position for position, text in enumerate(words[:-1]) if _ends_with_step(text)), default=-1)
    keys = [(position, _KEY.fullmatch(words[position])) for position in range(step + 1, len(words) - 1)]
    cells = tuple((position, match.group(1)) for position, match in keys if match is not None)
    return Form(step, cells) if step >= 0 and cells else None


def _ends_with_step(text: str) -> bool:
    return any(match.end() == len(text) for match in _BEFORE_STEP.finditer(text))


class VerlAdapter(Adapter):
    """Reads verl's console, whatever stands before `step:`, and its `{"step": 1, "data": {…}}` lines.

    A line that ends without its newline may end within a number: its last value is left out, and a note says so.
    """

    name: ClassVar[str] = "verl"
    title: ClassVar[str] = "verl console output or file logger"
    framework: str | None = "verl"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        return bool(self._layout)

    @cached_property
    def _layout(self) -> str:
        """`json` or `console`; empty where it is neither."""
        self.why = "no line `step:N - key:value - …`"
        if not self.source.is_text:
            return ""
        if json_lines.looks_like_json_lines(self.source):
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

    def fill(self, builder: TableBuilder) -> None:
        if self._layout == "json":
            builder.add_all(self._unwrapped())
        else:
            fill_lines(builder, self._lines())

    def _unwrapped(self) -> Iterator[Mapping[str, Any]]:
        for row in json_lines.iter_json_rows(self):
            data = row.get("data")
            yield {**data, "step": row.get("step")} if type(data) is dict else row

    def _lines(self) -> Iterator[Line]:
        forms = Forms(form_of, split_values)
        self.problems.last_row = 0
        for number, line in self.source.lines(self.problems, self.progress):
            if b"step:" not in line or len(line) > _MAX_BYTES:
                continue
            values, _, form = forms.read(console.plain_line(line).decode("utf-8", "replace"))
            if form is None:
                continue
            self.problems.last_row = number
            if form.step > 0:
                self.problems.add(number, "two rows in one line: the first was left out")
            if number == self.problems.unterminated:
                form = self._without_last(number, form)
            if form is not None:
                yield form, values

    def _without_last(self, number: int, form: Form) -> Form | None:
        *cells, (_, lost) = form.cells
        if not cells:
            self.problems.add(number, "no value that is certainly complete")
            return None
        self.notes.append(f"line {number} has no newline: its last value ({lost[:80]}) may be cut off and was left out")
        return Form(form.step, tuple(cells))


def _is_wrapped(row: Mapping[str, Any]) -> bool:
    data = row.get("data")
    return "step" in row and type(data) is dict and any("/" in key for key in data)
