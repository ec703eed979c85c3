"""Free text with numbers in it: rows of named numbers on one line, in progress bars, or spread over several lines.

Each row gets a step by what it counts by; where the program was started again, the steps start over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console, json_lines
from rldk.ingest.formats.number_lines import Forms, Line, complete_cells, fill_lines, parse_count, parse_number
from rldk.ingest.formats.text_blocks import Blocks, SpreadRows, find_blocks
from rldk.ingest.formats.text_form import TextForm, form_of_text
from rldk.runs.table import TableBuilder

__all__ = ["KeyValueAdapter"]

_CANDIDATE = re.compile(rb"[A-Za-z)\]\"'] ?[=: ] ?[\"']?[-+.]?(?:\d|nan|inf|NaN)")
_BAR = re.compile(
    r"(?:(?<!\d)\d{1,9}%\|[^|]{0,500}\|[^\[]{0,500}|(?<!\d)\d{1,9}it )"
    r"\[[^\],]{0,200},[^\],]{0,200}(?:it/s|s/it|\?)(?:, ([^\]]*))?\]"
)
_HEAD_LINES = 20000
_MAX_CHARS = 1 << 16  # no row is longer


class KeyValueAdapter(Adapter):
    """Reads rows of named numbers out of any text, with time stamps and levels before them, or in a progress bar.

    A line is a row only if the catalogue knows what is measured in it. Where the program's first lines come again
    between two rows, it was restarted, and another run begins.
    """

    name: ClassVar[str] = "keyvalue"
    title: ClassVar[str] = "free text with `key=value` or `key: value`"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        self.why = "no lines that name two metrics, or a metric and a step, with their numbers"
        source = self.source
        if not console.is_console(source) or json_lines.looks_like_json_lines(source):
            return False
        if self._blocks is not None:
            self.why = f"lines with {', '.join(sorted(self._blocks.keys)[:4])} on lines of their own"
            return True
        if self._first_row is None:
            return False
        self.why = f"lines with {', '.join(key for _, key, _ in self._first_row.cells[:4])}"
        return True

    @cached_property
    def _first_row(self) -> TextForm | None:
        """The form of the first rows: one that counts, or the same form twice."""
        forms = Forms(form_of_text)
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

    @cached_property
    def _blocks(self) -> Blocks | None:
        """Which values stand on lines of their own, beside those with a step."""
        forms = Forms(form_of_text)
        texts = (text for line in console.iter_head(self.source, _CANDIDATE) if b"%|" not in line for text in _texts(line))
        read = (forms.read(console.split_stamp(text)[1]) for text in texts)
        return find_blocks((words, form) for _, words, form in read)

    def fill(self, builder: TableBuilder) -> None:
        fill_lines(builder, self._lines())

    def _lines(self) -> Iterator[Line]:
        """The lines that are rows; after its numbers, each has its step, epoch and time."""
        forms = Forms(form_of_text)
        counter, banner, launches = _StepCounter(), _Banner(), 1
        counts = self._first_row is not None and self._first_row.counts
        spread = SpreadRows(self._blocks) if self._blocks is not None else None
        previous = ""
        self.problems.last_row = 0
        for number, line in self.source.lines(self.problems, self.progress):
            texts = _texts(line)
            complete = len(texts) - (number == self.problems.unterminated)
            for position, text in enumerate(texts):
                if text == previous and text.startswith("\r"):
                    continue  # a bar that was drawn again
                previous = text
                time, rest = console.split_stamp(text)
                values, words, form = forms.read(rest)
                if spread is not None and spread.opens(form, words):
                    yield from spread.at(counter.next(None, None, None, hash(words)))
                if spread is not None and spread.takes(form, words, values, time):
                    for row in spread.ready():
                        self.problems.last_row = number
                        yield row
                    continue
                if spread is not None and form.step is not None and not form.is_row:
                    step, total, _ = _place_of(form, values)
                    if step is not None:
                        yield from spread.at(counter.next(step, total, None, hash(words)))
                    continue
                if not form.is_row or (counts and not form.counts):
                    banner.see(words)
                    continue
                self.problems.last_row = number
                if position == complete and not text.startswith("\r"):
                    places = (form.step, form.total, form.epoch)
                    cells = complete_cells(form.cells, words, self.problems, self.notes, places)
                    if not cells:
                        continue
                    form = replace(form, cells=cells)
                if banner.began_again():
                    counter, launches = _StepCounter(), launches + 1
                step, total, epoch = _place_of(form, values)
                here = counter.next(step, total, epoch, hash(words))
                yield form, [*values, here, epoch, time]
                if spread is not None:
                    yield from spread.at(here)
        self._note_steps(counter.by, launches)

    def _note_steps(self, counted_by: str, launches: int) -> None:
        if counted_by == "epoch":
            self.notes.append("no step is logged; the epoch is used as the step")
        elif counted_by == "number":
            self.notes.append("no step is logged; rows are numbered from 1")
        if launches > 1:
            self.notes.append(f"{launches} launches, recognised by the lines the program begins with")


def _place_of(form: TextForm, values: Sequence[str]) -> tuple[int | None, int | None, float | None]:
    """The step of a line, how many there are in all, and its epoch; `None` where it does not say."""
    step = None if form.step is None else parse_count(values[form.step])
    total = None if form.total is None else parse_count(values[form.total])
    return step, total, None if form.epoch is None else parse_number(values[form.epoch])


def _texts(line: bytes) -> list[str]:
    """What is to be read of a line: itself, or what each progress bar in it says after the pace, which begins with `\\r`.

    A bar is read only if it is closed, so nothing in it is cut off.
    """
    text = console.plain_line(line).decode("utf-8", "replace")
    pieces = [piece for piece in text.split("\r") if len(piece) <= _MAX_CHARS]
    if "%|" not in text and "it [" not in text:
        return pieces
    return ["\r" + match.group(1) for piece in pieces if (match := _BAR.search(piece)) and match.group(1)]


@dataclass(slots=True)
class _StepCounter:
    """Turns what a row counts by into a step that grows within a launch.

    - A step that starts over when the epoch grows is counted on.
    - An epoch alone is the step; one that starts over (an inner loop over each batch) is counted on, and one that comes
      again in a row of the same form cannot be the step, so that from there on rows are numbered.
    - Where there is neither, rows are numbered.
    """

    step: int = 0
    by: str = ""
    _offset: int = 0
    _last: int = -1
    _epoch: float = -1.0
    _forms: frozenset[int] = frozenset()

    def next(self, step: int | None, total: int | None, epoch: float | None, form: int) -> int:
        """The step of the next row; `form` distinguishes rows that are printed for the same step."""
        epoch = epoch if epoch is not None and math.isfinite(epoch) else None
        if step is not None:
            self._by_step(step, total, epoch)
        elif epoch is not None and epoch.is_integer() and self.by in ("", "epoch"):
            self._by_epoch(int(epoch), form)
        else:
            self.by = "number"
            self.step += 1
        self._epoch = self._epoch if epoch is None else epoch
        return self.step

    def _by_step(self, step: int, total: int | None, epoch: float | None) -> None:
        if epoch is not None and epoch > self._epoch >= 0 and step <= self._last:
            self._offset += max(total or 0, self._last + (step == 0))
        elif epoch is not None and epoch < self._epoch:
            self._offset = 0
        self.by, self._last = "step", step
        self.step = self._offset + step

    def _by_epoch(self, epoch: int, form: int) -> None:
        self.by = "epoch"
        if epoch == self._last and form in self._forms:
            self.by = "number"
            self.step += 1
            return
        if epoch < self._last:
            self._offset = self.step
        if epoch != self._last:
            self._forms = frozenset()
        self._forms |= {form}
        self._last = epoch
        self.step = self._offset + epoch


class _Banner:
    """Remembers the first two lines of a file that are not rows, and notices when both come again, one after the other.

    One line would not do: a warning or a heading may be printed at every step.
    """

    def __init__(self) -> None:
        self._first: list[tuple[str, ...]] = []
        self._recent: list[tuple[str, ...]] = []
        self._complete = self._again = self._rows_seen = False

    def see(self, words: tuple[str, ...]) -> None:
        """Take a line that is not a row, by its words."""
        if not any(character.isalpha() for text in words for character in text):
            return
        if not self._complete:
            self._first.append(words)
            self._complete = len(self._first) == 2
            return
        self._recent = [*self._recent[-1:], words]
        if self._recent == self._first:
            self._again = True

    def began_again(self) -> bool:
        """Take a row. Returns whether the program was started again since the last one."""
        again, self._again = self._again and self._rows_seen, False
        self._rows_seen = self._complete = True
        self._recent = []
        return again
