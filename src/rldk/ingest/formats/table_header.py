"""The header of a table of delimited text: the names of its columns, and what separates them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from rldk.core.jsonio import to_number
from rldk.ingest.source import Source

__all__ = ["Header", "header_of", "is_comment"]

_DELIMITERS = ",\t;|"
_PAIR = re.compile(r"[=:]\s*[-+]?\.?(?:\d|nan\b|inf\b)|[A-Za-z] [-+]?\.?\d[\d.]*\s*$|\d{4}-\d\d-\d\d|\[\d+/\d+\]")


@dataclass(frozen=True, slots=True)
class Header:
    """The names of the columns, what separates them, and the header's own line.

    Of several columns of one name, the later ones have a number: `reward`, `reward.1`. `repeated` says which are such names.
    """

    names: tuple[str, ...]
    delimiter: str
    line: bytes
    repeated: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What to know of columns that share a name."""
        if not self.repeated:
            return []
        names, first = ", ".join(self.repeated[:5]), self.repeated[0]
        return [f"several columns have the same name ({names}): the later ones are read as {first}.1 and so on"]


@lru_cache(maxsize=1)
def header_of(source: Source) -> Header | None:
    """The header, if the file looks like a table: two columns or more in every line, none named by a number."""
    lines = list(source.head_lines[:20])
    while lines and is_comment(lines[0]):
        lines.pop(0)
    if not lines or lines[0].lstrip()[:1] in (b"{", b"["):
        return None
    texts = [line.decode("utf-8", "replace") for line in lines]
    for delimiter in _DELIMITERS:
        try:
            names, *rows = csv.reader(texts, delimiter=delimiter)
        except (csv.Error, ValueError):
            return None  # a carriage return within a line: a console's progress bar
        names = [name.strip() for name in names]
        if len(names) < 2 or names.count("") > 1 or any(to_number(name) is not None for name in names):
            continue
        if any(map(_PAIR.search, names)):
            continue  # a header has no values: `Step: 10, Loss: 0.5` in every line is not a table
        if all(len(row) == len(names) for row in rows[:-1]):
            repeated = tuple(name for name, times in Counter(names).items() if times > 1)
            return Header(_numbered(names) if repeated else tuple(names), delimiter, lines[0], repeated)
    return None


def _numbered(names: list[str]) -> tuple[str, ...]:
    """The names, the second and later ones of each with a number that makes it different from all others."""
    taken, found = set(names), list[str]()
    numbers: dict[str, Iterator[int]] = {}
    for name in names:
        if name in numbers:
            free = next(one for number in numbers[name] if (one := f"{name}.{number}") not in taken)
            taken.add(free)
            found.append(free)
        else:
            numbers[name] = count(1)
            found.append(name)
    return tuple(found)


def is_comment(line: bytes) -> bool:
    """Whether a line before the header is a comment; `#` may also be the name of the first column."""
    return line.startswith(b"#") and line[1:2] not in (b",", b";", b"\t", b"|")
