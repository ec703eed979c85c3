"""Lines of words and numbers: the words are the line's form, which is understood once, and the numbers its values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
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
_WHOLE = re.compile(r"[\s,;|\])}]")
Plan = TypeVar("Plan")


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
    """What to do with a line by its words, worked out once for each form; bounded, since text has no end of forms."""

    def __init__(self, make: Callable[[tuple[str, ...]], Plan], most: int = 4096) -> None:
        self._make = make
        self._most = most
        self._known: dict[tuple[str, ...], Plan] = {}

    def get(self, words: tuple[str, ...]) -> Plan:
        """The plan for lines with these words."""
        try:
            return self._known[words]
        except KeyError:
            if len(self._known) >= self._most:
                self._known.clear()
            plan = self._known[words] = self._make(words)
            return plan
