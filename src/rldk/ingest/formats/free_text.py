"""Free text with numbers in it: which number of a line is which metric, by the words before it.

`Epoch 1: mean total loss=0.55 | mean actor loss=-0.002`, `step=10 loss=0.1 reward=0.2`, `Step: 10/500, Loss: 0.5`,
`iter 10 | loss 0.1 | reward 0.2` and `step 10: loss 2.34, lr 1e-06` are all read. A line is a row only if the catalogue
knows what it measures: text is full of numbers that measure nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from rldk.core.catalog import identify, is_known, is_measured, locate
from rldk.core.catalog.axes import STEP_KEYS, is_axis
from rldk.core.catalog.guess import guess
from rldk.core.catalog.metric import normalise
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console, json_lines
from rldk.ingest.formats.console_steps import Banner, StepCounter
from rldk.ingest.formats.number_lines import (
    Forms,
    Line,
    complete_cells,
    factor_of,
    fill_lines,
    iter_lines,
    numbers_of,
    parse_count,
    parse_number,
)
from rldk.ingest.formats.text_blocks import Blocks, SpreadRows, find_blocks
from rldk.runs.table import TableBuilder

__all__ = ["KeyValueAdapter", "TextForm", "form_of_text"]

_CUT = re.compile(r".*(?:[|,;:=\t(){}\[\]<>\"'*•·▶→✨]| - |--|=>|->)", re.DOTALL)
_GLUED = re.compile(r"[^\s|,;:=()\[\]{}\"']+")
_LEVEL = re.compile(r"^(?:INFO|DEBUG|WARNING|WARN|ERROR|TRACE|NOTICE)\b\s*", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w/.@#%+ -]*")
_STEPS = frozenset(map(normalise, STEP_KEYS)) | {"steps", "it", "train_step", "optimizer_step", "batch", "episode"}
_TOTALS = frozenset({"total_steps", "max_steps", "num_steps", "epochs", "num_epochs", "total_epochs", "max_epochs"})
_NOT_VALUES = frozenset({"cuda", "cpu", "npu"})  # of `device='cuda:0'`
_BEFORE_STEP = frozenset({"end", "of", "finished", "completed", "done", "after", "with", "this"})
"""Words before a step that is over: `end of step 3`, `finished step 3`."""
_WRAPPER = re.compile(r"(?:(?:np|numpy|torch)\.)?(?:tensor|array)\((?=\[$)")
_MOST_WORDS = 5
_MOST_NUMBERS = 2_000  # of a line that may be a row


@dataclass(frozen=True, slots=True)
class TextForm:
    """What the numbers of a line are, by position; `cells` are position, key and factor. A line may not be a row.

    `lists` are numbers in brackets under one name, such as `rewards=[0, 1]`, of which the mean counts.
    """

    step: int | None
    total: int | None
    epoch: int | None
    cells: tuple[tuple[int, str, float], ...]
    is_row: bool
    lists: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def __bool__(self) -> bool:
        return self.is_row

    @property
    def counts(self) -> bool:
        """Whether such a line says where it stands."""
        return self.step is not None or self.epoch is not None

    def columns(self, values: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """The columns of several such lines, of whose values the last three are step, epoch and time."""
        found: dict[str, Any] = {"step": np.array(values[-3], dtype=np.float64)}
        for position, key, factor in self.cells:
            found[key] = numbers_of(values[position], factor)
        for key, positions in self.lists:
            found[key] = np.array([_mean(row) for row in zip(*(values[position] for position in positions), strict=True)])
        for name, cells in (("epoch", values[-2]), ("wall_time", values[-1])):
            if any(cell is not None for cell in cells):
                found[name] = np.array(cells, dtype=np.float64)
        return found


def _mean(texts: tuple[str, ...]) -> float:
    numbers = [number for text in texts if (number := parse_number(text)) is not None]
    return sum(numbers) / len(numbers) if numbers else math.nan


def form_of_text(words: tuple[str, ...]) -> TextForm:
    """Understand a line by its words.

    It is a row if it names two quantities that are measured at each step, or one together with a step or an epoch. Settings
    (a learning rate, a coefficient) do not count: that is how a configuration looks.
    """
    if len(words) > _MOST_NUMBERS:
        return TextForm(None, None, None, (), False)
    names = [_key(text, first=position == 0) for position, text in enumerate(words[:-1])]
    framework = identify([key for key, _ in names if key])
    counted = [("", False) if words[position + 1][:1].isalpha() else name for position, name in enumerate(names)]
    step = _position(counted, _STEPS)  # `update=216.6s` is a time
    epoch = _position(names, frozenset({"epoch"}))
    if step is None and epoch is None and _counts_alone(words):
        step = 0
    total = step + 1 if step is not None and words[step + 1] == "/" and len(words) > step + 2 else None
    lists = {positions[0]: (key, positions) for key, positions in _lists(names, words)}
    cells = []
    for position, (key, said) in enumerate(names):
        name = normalise(key)
        counts = name in _STEPS or name in _TOTALS or name == "epoch"
        if not key or position == total or position in lists or counts or is_axis(key):
            continue
        factor = factor_of(words[position + 1], key, framework)
        if factor is not None and (said or is_known(key) or measures(key)) and name not in _NOT_VALUES:
            cells.append((position, key, factor))
    measured = sum(measures(key) for _, key, _ in cells) + len(lists)
    placed = step is not None or epoch is not None
    return TextForm(step, total, epoch, tuple(cells), measured + placed >= 2 and measured > 0, tuple(lists.values()))


def measures(key: str) -> bool:
    """Whether a key names something that is measured, by the catalogue or by its parts: `avg_rew` says what it is."""
    return is_measured(key) or ("_" in key and guess(key) is not None)


def _counts_alone(words: tuple[str, ...]) -> bool:
    """Whether a line begins with its count in brackets: `[0004/0500] reward …`, `(3/500) reward …`."""
    return len(words) > 3 and words[0].strip() in ("[", "(") and words[1] == "/" and words[2][:1] in ("]", ")")


def _lists(names: list[tuple[str, bool]], words: tuple[str, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The lists of numbers under the name of a metric that is a mean, and the positions of their numbers."""
    for position, (key, _) in enumerate(names):
        if not key or not words[position].rstrip().endswith(("[", "(")):
            continue
        last = position
        while last + 1 < len(names) and words[last + 1].strip() in (",", ""):
            last += 1
        place = locate(key)
        is_mean = place is not None and place.metric.endswith(("_mean", "accuracy"))
        if last > position and is_mean and words[last + 1].lstrip()[:1] in ("]", ")"):
            yield key, tuple(range(position, last + 1))


def _position(names: list[tuple[str, bool]], wanted: frozenset[str]) -> int | None:
    """The first number with one of these names; one that `=` or `:` gives it goes before one that only follows it."""
    found = [position for position, (key, _) in enumerate(names) if key and normalise(key) in wanted]
    return next((position for position in found if names[position][1]), found[0] if found else None)


@lru_cache(maxsize=4096)
def _key(before: str, first: bool) -> tuple[str, bool]:
    """The name before a number, and whether `=` or `:` says that the number is its value."""
    text = _WRAPPER.sub("", before.rstrip())
    said = text.endswith(("=", ":", "=[", ": [", "=(", ": ("))
    if not said and text == before and not text.endswith(("[", "(", "#")):
        return "", False
    phrase = text.rstrip("=:[(# ").rstrip("\"'")
    if not first:
        phrase = _GLUED.sub("", phrase, count=1) if _GLUED.match(phrase) else phrase
    cut = _CUT.match(phrase)
    phrase = _LEVEL.sub("", phrase[cut.end() if cut else 0 :].strip())
    if not _NAME.fullmatch(phrase):
        return "", False
    return _shortest_known(phrase, said), said


@lru_cache(maxsize=4096)
def _shortest_known(phrase: str, said: bool) -> str:
    """The phrase, without the words before it that are not part of the name: `info step` is the step."""
    words = phrase.split()
    for start in range(len(words)):
        name = " ".join(words[start:])
        if normalise(name) in _STEPS and _BEFORE_STEP.issuperset(word.lower() for word in words[:start]):
            return name
        if normalise(name) in _STEPS or normalise(name) == "epoch" or is_known(name) or is_axis(name):
            return name if start == 0 or said else ""
    return phrase if (said and len(words) <= _MOST_WORDS) or (len(words) == 1 and measures(phrase)) else ""


_CANDIDATE = re.compile(rb"[A-Za-z)\]\"'] ?[=: ] ?[-+.]?(?:\d|nan|inf|NaN)")
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

    def can_handle(self) -> bool:
        self.why = "no lines that name two metrics, or a metric and a step, with their numbers"
        source = self.source
        if not console.is_console(source) or json_lines.looks_like_json_lines(source):
            return False
        found = self._first = self._first_row()
        blocks = self._blocks = self._find_blocks()
        if blocks is not None:
            self.why = f"lines with {', '.join(sorted(blocks.keys)[:4])} beside lines with a step"
            return True
        if found is None:
            return False
        self.why = f"lines with {', '.join(key for _, key, _ in found.cells[:4])}"
        return True

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

    def _find_blocks(self) -> Blocks | None:
        """Whether values stand on lines of their own, beside those with a step."""
        forms = Forms(form_of_text)
        texts = (text for line in console.iter_head(self.source, _CANDIDATE) if b"%|" not in line for text in _texts(line))
        read = (forms.read(console.split_stamp(text)[1]) for text in texts)
        return find_blocks((words, form) for _, words, form in read)

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_lines(self._lines())

    def fill(self, builder: TableBuilder) -> None:
        fill_lines(builder, self._lines())

    def _lines(self) -> Iterator[Line]:
        """The lines that are rows; after its numbers, each has its step, epoch and time."""
        forms = Forms(form_of_text)
        counter, banner, launches = StepCounter(), Banner(), 1
        first = getattr(self, "_first", None) or self._first_row()
        counts = first is not None and first.counts
        blocks = getattr(self, "_blocks", None) or self._find_blocks()
        spread = SpreadRows(blocks) if blocks is not None else None
        previous = ""
        self.problems.last_row = 0
        for number, line in self.source.lines(self.problems, self.progress):
            for text in _texts(line):
                if text == previous and text.startswith("\r"):
                    continue  # a bar that was drawn again
                previous = text
                time, rest = console.split_stamp(text)
                values, words, form = forms.read(rest)
                if spread is not None and spread.takes(form, words, values, time):
                    for row in spread.ready():
                        self.problems.last_row = number
                        yield row
                    continue
                if spread is not None and form.step is not None and not form.is_row:
                    if (count := parse_count(values[form.step])) is not None:
                        total = None if form.total is None else parse_count(values[form.total])
                        yield from spread.at(counter.next(count, total, None, hash(words)))
                    continue
                if not form.is_row or (counts and not form.counts):
                    banner.see(words)
                    continue
                self.problems.last_row = number
                if number == self.problems.unterminated:
                    places = (form.step, form.total, form.epoch)
                    cells = complete_cells(form.cells, words, self.problems, self.notes, places)
                    if not cells:
                        continue
                    form = replace(form, cells=cells)
                if banner.began_again():
                    counter, launches = StepCounter(), launches + 1
                epoch = None if form.epoch is None else parse_number(values[form.epoch])
                total = None if form.total is None else parse_count(values[form.total])
                step = None if form.step is None else parse_count(values[form.step])
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


def _texts(line: bytes) -> list[str]:
    """What is to be read of a line: itself, or what each progress bar in it says after the pace."""
    text = console.strip_colours(line).decode("utf-8", "replace")
    pieces = [piece for piece in text.split("\r") if len(piece) <= _MAX_CHARS]
    if "%|" not in text and "it [" not in text:
        return pieces
    return ["\r" + match.group(1) for piece in pieces if (match := _BAR.search(piece)) and match.group(1)]
