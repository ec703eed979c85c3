"""What a table of delimited text says: the names in its header, and the numbers in the cells below them.

A cell may be a gap, or have a decimal comma, thousands, a percentage or `3.4k` in it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np
import numpy.typing as npt

from rldk.core.catalog.axes import is_axis
from rldk.core.jsonio import to_number
from rldk.ingest.source import Source

__all__ = ["EMPTY", "Cells", "Columns", "Header", "header_of", "is_comment"]

EMPTY = frozenset({"", "NA", "N/A", "null", "None", "none", "-"})
"""What stands in a cell that has no value."""
Cells = npt.NDArray[np.float64] | list[str | None]

_MANY_GAPS = 0.2
_ENDINGS = {"%": 0.01, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")
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


class Columns:
    """Reads column after column, many rows at a time.

    It tells a `nan` that was measured, which is evidence, from one that stands for a cell that was not. Some writers have
    a `nan` in every row that lacks the metric: a column of nothing else, or one where more than a fifth of the rows
    between its numbers say `nan`. A few of them, and those after the last number, were measured.

    A comma is decimal in the whole table where a cell shows it (`0,51`); else it parts thousands. Where another sign
    separates the cells, which is done for the sake of decimal commas, `1,234` alone may be either, and is left out.
    """

    def __init__(self, separator: str = ",") -> None:
        self.met: set[str] = set()  # columns in which there was a number
        self.words: dict[str, str] = {}  # a cell of each column that had words instead
        self._doubtful = separator != ","
        self._decimal = False

    def look(self, rows: list[list[str]]) -> None:
        """Look at the next rows for a comma that can only be decimal."""
        if not self._decimal:
            self._decimal = any(
                "," in cell and _COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for row in rows for cell in row
            )

    def column(self, name: str, cells: tuple[str, ...]) -> Cells | None:
        """A column's cells as numbers; as words where they place a row; `None` where they are words that do not.

        An empty cell was not logged, and is masked; of one that says `nan` see above.
        """
        if "_" not in "".join(cells):  # float() takes "1_000"; no log means that
            try:
                values = np.array(list(map(float, cells)))
                return np.ma.MaskedArray(values, self._gaps(name, values))
            except ValueError:
                pass
            try:
                values = np.array([float(cell or "nan") for cell in cells])
                self.met.add(name)
                return np.ma.MaskedArray(values, ~np.array(list(map(bool, cells))))
            except ValueError:
                pass
        if is_axis(name):
            return [None if cell in EMPTY else _plain(cell) for cell in cells]
        return self._odd(name, cells)

    def _odd(self, name: str, cells: tuple[str, ...]) -> Cells | None:
        """A column in which some cells are not plain numbers."""
        numbers = [None if cell in EMPTY else self._number(cell) for cell in cells]
        missing = [number is None for number in numbers]
        if all(missing):
            word = next((cell for cell in cells if cell not in EMPTY), None)
            if word is not None:
                self.words.setdefault(name, word)
            return None
        self.met.add(name)
        return np.ma.MaskedArray(np.array([np.nan if number is None else number for number in numbers]), np.array(missing))

    def _number(self, cell: str) -> float | None:
        """The number in a cell: a percentage is a fraction of 1, and `3.4k` is 3400."""
        factor = _ENDINGS.get(cell[-1:])
        text = cell if factor is None else cell[:-1].rstrip()
        if self._decimal and _COMMA.fullmatch(text):
            text = text.replace(",", ".")
        elif not (self._doubtful and _COMMA.fullmatch(text)):
            text = _plain(text)
        value = to_number(text)
        return value if value is None or factor is None else factor * value

    def _gaps(self, name: str, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which of a column's next values were not measured."""
        absent = np.isnan(values)
        if not absent.any():
            self.met.add(name)
            return absent
        numbers = np.flatnonzero(~absent)
        if not len(numbers):
            return absent & (name not in self.met)
        self.met.add(name)
        before_last = absent[: numbers[-1]]
        if before_last.sum() <= _MANY_GAPS * (numbers[-1] + 1):
            return np.zeros_like(absent)
        longest = np.diff(numbers, prepend=-1).max()
        if len(values) - numbers[-1] > longest:
            absent[numbers[-1] :] = False
        return absent


def _plain(cell: str) -> str:
    """A step or a time without the commas between its thousands."""
    return cell.replace(",", "") if _THOUSANDS.fullmatch(cell) else cell
