"""Lines of words and numbers: the words are the form of a line, which is understood once; the numbers are its values.

Lines of one form that follow each other become columns together. A unit after a number (`0.35%`, `5min`, `12.3k`) is a factor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import CATALOG, locate
from rldk.log.problems import LineProblems
from rldk.runs.table import TableBuilder, TableFull, no_garbage_collection

__all__ = [
    "Forms", "Line", "complete_cells", "factor_of", "fill_lines", "numbers_of", "parse_count", "parse_number", "split_numbers",
]  # fmt: skip

# Both begin with a plain set of characters, and look back only then, so that the search can skip from one to the next.
_DIGITS = r"[\d.]*(?:,\d\d\d(?!\d)[\d,.]*)?(?:[eE][-+]?\d+)?"
_ODD = r"[nN][aA][nN](?!\w)|[iI]nf(?:inity)?(?!\w)"
_FINITE = re.compile(rf"([-+.\d](?<![\w.][-+.\d])(?:(?<=\d)|(?=\.?\d)){_DIGITS})", re.ASCII)
_ANY = re.compile(
    rf"([-+.\dnNiI](?<![\w.][-+.\dnNiI])(?:(?:(?<=\d)|(?<=[-+.])(?=\.?\d)){_DIGITS}"
    rf"|(?<=[-+])(?:{_ODD})|(?<=[nN])[aA][nN](?!\w)|(?<=[iI])nf(?:inity)?(?!\w)))",
    re.ASCII,
)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_RUNS_ON = re.compile(r"[.\w+-]|$")  # words that could be taken for a part of the number before them
_AFTER_NUMBER = re.compile(r"[\s,;|\])}]")
_MOST_FORMS, _MOST_WORDS = 4096, 200_000  # forms that are remembered, and words of all of them
_OFTEN = 8  # an expression takes milliseconds to make
_MAX_NEW_ROWS = 20_000  # rows of forms that were not known: to work out one takes a tenth of a millisecond
Plan = TypeVar("Plan")
Split = Callable[[str], tuple[list[str], tuple[str, ...]]]


def split_numbers(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The numbers of a text, and the words before, between and after them (one more than there are numbers)."""
    may_be_odd = "nan" in text or "NaN" in text or "inf" in text.replace("info", "") or "Inf" in text or "NAN" in text
    parts = (_ANY if may_be_odd else _FINITE).split(text)
    return parts[1::2], tuple(parts[::2])


def parse_number(text: str) -> float | None:
    """The value of what `split_numbers` found: `1,234.5` is 1234.5, and a version such as `0.10.2` is not a number."""
    try:
        return float(text)
    except ValueError:
        text = text.rstrip(".,")
    if "," in text:
        return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else None
    try:
        return float(text)
    except ValueError:
        return None


def parse_count(text: str) -> int | None:
    """A step or an epoch: a whole number that is not negative."""
    value = parse_number(text)
    return int(value) if value is not None and math.isfinite(value) and value >= 0 and value == int(value) else None


Cell = tuple[int, str, float]
"""A number of a line: its position among the numbers, its key, and the factor it is multiplied with."""


def complete_cells(
    cells: tuple[Cell, ...], words: tuple[str, ...], problems: LineProblems, notes: list[str], places: Sequence[int | None] = ()
) -> tuple[Cell, ...]:
    """The cells that are certainly complete in a last line without its newline, which may be cut off within a number.

    There are none, and a problem is added, where the number that may be cut off is the only one, or one of `places`, such as
    the step.
    """
    number, last = problems.unterminated or 0, len(words) - 2
    if _AFTER_NUMBER.match(words[-1]):
        notes.append(f"line {number} has no newline: values after its last may be missing")
        return cells
    kept = tuple(cell for cell in cells if cell[0] != last)
    if not kept or last in places:
        problems.add(number, "no value that is certainly complete")
        return ()
    notes.append(f"line {number} has no newline: its last value may be cut off and was left out")
    return kept


class Forms(Generic[Plan]):
    """What to do with a line by its words, worked out once for each form; bounded, since text has no end of forms.

    A form that comes several times in a row gets an expression of its own, with which lines like it are read at once. Where
    thousands of rows are of forms that were not seen before, no program prints them: `TableFull` ends the reading.
    """

    def __init__(self, make: Callable[[tuple[str, ...]], Plan], split: Split = split_numbers) -> None:
        self._size = 0
        self._make = make
        self._split = split
        self._known: dict[tuple[str, ...], Plan] = {}
        self._last: tuple[tuple[str, ...], Plan] | None = None
        self._again: re.Pattern[str] | None = None
        self._repeats = self._new_rows = 0

    def read(self, text: str) -> tuple[list[str], tuple[str, ...], Plan]:
        """The numbers of a line, its words, and the plan for them."""
        if self._last is not None and self._again is not None and (match := self._again.fullmatch(text)):
            return list(match.groups()), *self._last
        values, words = self._split(text)
        if self._last is not None and self._last[0] == words:
            self._repeats += 1
            if self._repeats == _OFTEN:
                self._again = _expression(words)
            return values, *self._last
        plan = self._known.get(words)
        if plan is None:
            if len(self._known) >= _MOST_FORMS or self._size >= _MOST_WORDS:
                self._known.clear()
                self._size = 0
            self._size += len(words)
            plan = self._known[words] = self._make(words)
            self._new_rows += bool(plan)
            if self._new_rows > _MAX_NEW_ROWS:
                raise TableFull
        if plan:  # a line that is not a row does not separate two that are
            self._last, self._again, self._repeats = (words, plan), None, 0
        return values, words, plan


@lru_cache(maxsize=64)
def _expression(words: tuple[str, ...]) -> re.Pattern[str] | None:
    """What a line with these words, and plain numbers between them, looks like; `None` if that could be misread."""
    if any(map(_RUNS_ON.match, words[1:-1])) or len(words) > 90:
        return None
    return re.compile(r"([-+.\deE]+|[-+]?(?:nan|inf))".join(map(re.escape, words)), re.ASCII)


Numbers = npt.NDArray[np.float64]
Line = tuple["LineForm", Sequence[Any]]
"""A line's form and its values: texts of numbers, and whatever else the form's `columns` understands."""

_MOST_LINES = 2048
FEW = 8


class LineForm(Protocol):
    """The form of a line: it knows which of the values is what."""

    def columns(self, values: Sequence[tuple[Any, ...]]) -> Mapping[str, Any]:
        """The columns of several lines of this form; `values` has a tuple for each value of a line."""


def numbers_of(cells: tuple[str, ...], factor: float = 1.0) -> Numbers | list[float | None]:
    """Texts of numbers as numbers; masked where one turns out to be none. A `nan` is a number: it was logged.

    A few are given as a list, in which what is not a number is `None`: an array would take longer to make than to use.
    """
    if len(cells) <= FEW:
        numbers = list(map(parse_number, cells))
        return numbers if factor == 1.0 else [None if number is None else number * factor for number in numbers]
    missing: Any = False
    try:
        values = np.array(list(map(float, cells)))
    except ValueError:
        numbers = list(map(parse_number, cells))
        missing = np.array([number is None for number in numbers])
        values = np.array([np.nan if number is None else number for number in numbers])
    return np.ma.MaskedArray(values if factor == 1.0 else values * factor, missing)


def fill_lines(builder: TableBuilder, lines: Iterable[Line]) -> None:
    """Put lines into a table: by columns where many of one form follow each other, else row by row."""
    with no_garbage_collection():
        for columns, rows in _blocks(lines):
            if rows > FEW:
                builder.add_columns(columns, rows)
            else:
                for row in _rows(columns, rows):
                    builder.add(row)


def _blocks(lines: Iterable[Line]) -> Iterator[tuple[Mapping[str, Any], int]]:
    form: LineForm | None = None
    held: list[Sequence[Any]] = []
    for next_form, values in lines:
        if form is not None and (next_form is not form or len(held) == _MOST_LINES):
            yield form.columns(list(zip(*held, strict=True))), len(held)
            held = []
        form = next_form
        held.append(values)
    if form is not None:
        yield form.columns(list(zip(*held, strict=True))), len(held)


def _rows(columns: Mapping[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Columns as rows, without the cells that are masked or `None`."""
    cells = {}
    for name, column in columns.items():
        cells[name] = column.tolist() if isinstance(column, np.ndarray) else column  # a masked cell becomes `None`
    for row in range(count):
        yield {name: column[row] for name, column in cells.items() if column[row] is not None}


_UNIT = re.compile(r"([%A-Za-z°µ]+(?:/[A-Za-z]+)?)|\s(%|ms|min|sec|seconds|minutes|hours|[kKMGT]i?B)(?=[\s,;|:)\]]|$)")
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6}
_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0, "m": 60.0, "minutes": 60.0, "h": 3600.0}
_GIB = {"GB": 1.0, "GiB": 1.0, "G": 1.0, "MB": 2.0**-10, "MiB": 2.0**-10, "TB": 2.0**10}
_NEUTRAL = frozenset({"tok/s", "tokens/s", "it/s", "samples/s", "steps/s", "tokens", "tok", "nats", "steps", "x"})


def factor_of(after: str, key: str, framework: str | None = None) -> float | None:
    """What a number of the metric `key` is multiplied with, by the text after it; `None` if that is not understood."""
    match = _UNIT.match(after)
    if match is None:
        return 1.0
    unit = match.group(1) or match.group(2)
    place = locate(key, framework)
    entry = CATALOG.get(place.metric) if place is not None else None
    if unit == "%":
        return 1.0 if place is None or place.key.transform == "percent" or (entry and entry.unit == "%") else 0.01
    if unit in _NEUTRAL or entry is None:
        return 1.0 if unit in _NEUTRAL or unit in _SECONDS or unit in _GIB else None
    if unit in _SECONDS:
        return _SECONDS[unit] if entry.unit == "s" else _SECONDS[unit] / 60.0 if entry.unit == "min" else None
    if unit in _GIB:
        return _GIB[unit] if entry.unit == "GiB" else None
    return _SCALES.get(unit)
