"""Free text: `[2026-06-23 12:07:25] [INFO] Epoch 1: mean total loss=0.55 | mean actor loss=-0.002`, and its cousins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, delimited, jsonl
from rldk.adapters.formats.banner import Banner
from rldk.adapters.formats.counting import Counter
from rldk.adapters.formats.numbers import Forms, ends_whole, parse_count, parse_number, split_numbers
from rldk.adapters.formats.phrases import Phrases, phrases_of

__all__ = ["KeyValueAdapter"]

_CANDIDATE = re.compile(rb"[A-Za-z)\]\"'] ?[=: ] ?[-+.]?(?:\d|nan|inf|NaN)")
_BAR = re.compile(r"\d+%\|[^|]*\|[^\[]*\[[^\],]*,[^\],]*(?:it/s|s/it|\?)(?:, ([^\]]*))?\]")
_HEAD_LINES = 20000


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
        if not console.is_text(source) or source.head.lstrip()[:1] == b"{" or jsonl.looks_like_json_lines(source):
            return False
        if delimited.header_of(source) is not None:
            return False
        found = self._first_row()
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
                words = split_numbers(console.split_stamp(text)[1])[1]
                form = forms.get(words)
                if form.is_row and (form.step is not None or form.epoch is not None or words in seen):
                    return form
                if form.is_row:
                    seen.add(words)
        return None

    def read(self) -> Iterator[Mapping[str, Any]]:
        forms = Forms(phrases_of)
        counter, banner = Counter(), Banner()
        first = self._first_row()
        counts = first is not None and (first.step is not None or first.epoch is not None)
        previous = ""
        for number, line in self.source.lines(self.problems, self.progress):
            for text in _texts(line):
                if text == previous and "\r" in text[:1]:
                    continue
                previous = text
                time, rest = console.split_stamp(text.lstrip("\r"))
                values, words = split_numbers(rest)
                form = forms.get(words)
                if not form.is_row or (counts and form.step is None and form.epoch is None):
                    banner.see(words)
                    continue
                row = self._row(number, values, words, form)
                if row is None:
                    continue
                if banner.began_again():
                    counter.launch()
                epoch = parse_number(values[form.epoch]) if form.epoch is not None else None
                total = parse_count(values[form.total]) if form.total is not None else None
                step = parse_count(values[form.step]) if form.step is not None else None
                if epoch is not None:
                    row["epoch"] = epoch
                row["step"] = counter.next(step, total, epoch, hash(words))
                if time is not None:
                    row["wall_time"] = time
                yield row
        self._say(counter)

    def _row(self, number: int, values: list[str], words: tuple[str, ...], form: Phrases) -> dict[str, Any] | None:
        cells = form.cells
        if number == self.problems.unterminated and not ends_whole(words[-1]):
            cells = tuple(cell for cell in cells if cell[0] != len(values) - 1)
            if not cells or len(values) - 1 in (form.step, form.total, form.epoch):
                self.problems.add(number, "no value that is sure to be whole")
                return None
            self.notes.append(f"line {number} has no newline: its last value may be cut off and was left out")
        row: dict[str, Any] = {}
        for position, key, factor in cells:
            value = parse_number(values[position])
            if value is not None:
                row[key] = value * factor if factor != 1.0 else value
        return row or None

    def _say(self, counter: Counter) -> None:
        if counter.by == "epoch":
            self.notes.append("no step was logged: the epoch is taken for it")
        elif counter.by == "number":
            self.notes.append("no step was logged: rows are numbered from 1")
        if counter.restarts:
            self.notes.append(f"the program was started {counter.restarts + 1} times, by the lines it begins with")


def _texts(line: bytes) -> list[str]:
    """What is to be read of a line: itself, or what each progress bar in it says after the pace."""
    text = console.strip_colours(line).decode("utf-8", "replace")
    if "%|" not in text:
        return [text] if "\r" not in text else text.split("\r")
    return ["\r" + match.group(1) for piece in text.split("\r") if (match := _BAR.search(piece)) and match.group(1)]
