"""Free text: `[2026-06-23 12:07:25] [INFO] Epoch 1: mean total loss=0.55 | mean actor loss=-0.002`, and its cousins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, jsonl
from rldk.adapters.formats.banner import Banner
from rldk.adapters.formats.counting import Counter
from rldk.adapters.formats.numbers import Forms, ends_whole, parse_count, parse_number
from rldk.adapters.formats.phrases import Phrases, phrases_of
from rldk.adapters.formats.stretches import Line, fill_lines, iter_lines
from rldk.runs.table import TableBuilder

__all__ = ["KeyValueAdapter"]

_CANDIDATE = re.compile(rb"[A-Za-z)\]\"'] ?[=: ] ?[-+.]?(?:\d|nan|inf|NaN)")
_BAR = re.compile(r"\d+%\|[^|]*\|[^\[]*\[[^\],]*,[^\],]*(?:it/s|s/it|\?)(?:, ([^\]]*))?\]")
_HEAD_LINES = 20000
_MAX_CHARS = 1 << 16  # no row is longer


class KeyValueAdapter(Adapter):
    """Reads rows of named numbers out of any text, with time stamps and levels before them, or in a progress bar.

    A line is a row only if the catalogue knows what is measured in it. Where the program's first lines come again
    between two rows, it was started anew, and another run begins.
    """

    name: ClassVar[str] = "keyvalue"
    title: ClassVar[str] = "free text with `key=value` or `key: value`"

    def can_handle(self) -> bool:
        self.why = "no lines that name two metrics, or a metric and a step, with their numbers"
        source = self.source
        if not console.is_console(source) or jsonl.looks_like_json_lines(source):
            return False
        found = self._first = self._first_row()
        if found is None:
            return False
        self.why = f"lines with {', '.join(key for _, key, _ in found.cells[:4])}"
        return True

    def _first_row(self) -> Phrases | None:
        """The form of the first rows: one that counts, or the same form twice."""
        forms = Forms(phrases_of)
        seen: set[tuple[str, ...]] = set()
        for number, line in enumerate(console.iter_head(self.source, _CANDIDATE)):
            if number > _HEAD_LINES:
                break
            for text in _texts(line):
                _, words, form = forms.read(console.split_stamp(text)[1])
                if form.is_row and (form.counts or words in seen):
                    return form
                if form.is_row:
                    seen.add(words)
        return None

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_lines(self._lines())

    def fill(self, builder: TableBuilder) -> None:
        fill_lines(builder, self._lines())

    def _lines(self) -> Iterator[Line]:
        """The lines that are rows; after its numbers, each has its step, epoch and time."""
        forms = Forms(phrases_of)
        counter, banner = Counter(), Banner()
        first = getattr(self, "_first", None) or self._first_row()
        counts = first is not None and first.counts
        previous = ""
        for number, line in self.source.lines(self.problems, self.progress):
            for text in _texts(line):
                if text == previous and text.startswith("\r"):
                    continue  # a bar that was drawn again
                previous = text
                time, rest = console.split_stamp(text)
                values, words, form = forms.read(rest)
                if not form.is_row or (counts and not form.counts):
                    banner.see(words)
                    continue
                if number == self.problems.unterminated and ends_whole(words[-1]):
                    self.notes.append(f"line {number} has no newline: values after its last may be missing")
                elif number == self.problems.unterminated:
                    form = self._without_last(number, form, len(values) - 1)
                    if not form.is_row:
                        continue
                if banner.began_again():
                    counter.launch()
                epoch = None if form.epoch is None else parse_number(values[form.epoch])
                total = None if form.total is None else parse_count(values[form.total])
                step = None if form.step is None else parse_count(values[form.step])
                yield form, [*values, counter.next(step, total, epoch, hash(words)), epoch, time]
        self._say(counter)

    def _without_last(self, number: int, form: Phrases, last: int) -> Phrases:
        cells = tuple(cell for cell in form.cells if cell[0] != last)
        if not cells or last in (form.step, form.total, form.epoch):
            self.problems.add(number, "no value that is sure to be whole")
            return replace(form, is_row=False)
        self.notes.append(f"line {number} has no newline: its last value may be cut and was left out")
        return replace(form, cells=cells)

    def _say(self, counter: Counter) -> None:
        if counter.by == "epoch":
            self.notes.append("no step was logged: the epoch is taken for it")
        elif counter.by == "number":
            self.notes.append("no step was logged: rows are numbered from 1")
        if counter.restarts:
            self.notes.append(f"{counter.restarts + 1} launches, told apart by the lines the program begins with")


def _texts(line: bytes) -> list[str]:
    """What is to be read of a line: itself, or what each progress bar in it says after the pace."""
    text = console.strip_colours(line).decode("utf-8", "replace")
    if "%|" not in text:
        return [piece for piece in text.split("\r") if len(piece) <= _MAX_CHARS]
    return ["\r" + match.group(1) for piece in text.split("\r") if (match := _BAR.search(piece)) and match.group(1)]
