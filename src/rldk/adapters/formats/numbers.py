"""Lines of words and numbers: the words are the line's form, which is understood once, and the numbers its values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

__all__ = ["Forms", "ends_whole", "parse_count", "parse_number", "split_numbers"]

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
_WHOLE = re.compile(r"[\s,;|\])}]")
_OFTEN = 8  # an expression takes milliseconds to make
Plan = TypeVar("Plan")
Split = Callable[[str], tuple[list[str], tuple[str, ...]]]


def split_numbers(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The numbers of a text, and the words before, between and after them (one more than there are numbers)."""
    may_be_odd = "nan" in text or "NaN" in text or "inf" in text.replace("info", "") or "Inf" in text or "NAN" in text
    parts = (_ANY if may_be_odd else _FINITE).split(text)
    return parts[1::2], tuple(parts[::2])


def parse_number(text: str) -> float | None:
    """The value of what `split_numbers` found: `1,234.5` is 1234.5, and a version such as `0.10.2` is none."""
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


def ends_whole(after: str) -> bool:
    """Whether a number is whole by what follows it, where the line may be cut off."""
    return _WHOLE.match(after) is not None


class Forms(Generic[Plan]):
    """What to do with a line by its words, worked out once for each form; bounded, since text has no end of forms.

    A form that comes several times in a row gets an expression of its own, with which lines like it are read at once.
    """

    def __init__(self, make: Callable[[tuple[str, ...]], Plan], split: Split | None = None, most: int = 4096) -> None:
        self._make = make
        self._split = split or split_numbers
        self._most = most
        self._known: dict[tuple[str, ...], Plan] = {}
        self._last: tuple[tuple[str, ...], Plan] | None = None
        self._again: re.Pattern[str] | None = None
        self._repeats = 0

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
            if len(self._known) >= self._most:
                self._known.clear()
            plan = self._known[words] = self._make(words)
        if plan:  # what is no row does not come between two that are
            self._last, self._again, self._repeats = (words, plan), None, 0
        return values, words, plan


@lru_cache(maxsize=64)
def _expression(words: tuple[str, ...]) -> re.Pattern[str] | None:
    """What a line with these words, and plain numbers between them, looks like; `None` if that could be misread."""
    if any(map(_RUNS_ON.match, words[1:-1])) or len(words) > 90:
        return None
    return re.compile(r"([-+.\deE]+|[-+]?(?:nan|inf))".join(map(re.escape, words)), re.ASCII)
