"""Lines of one form that follow each other, turned into columns together: text by the line, numbers by the block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rldk.adapters.formats.numbers import parse_number
from rldk.runs.table import TableBuilder, no_garbage_collection

__all__ = ["Line", "Numbers", "Shaped", "fill_lines", "iter_lines", "numbers_of"]

Numbers = npt.NDArray[np.float64]
Line = tuple["Shaped", Sequence[Any]]
"""A line's form and its values: texts of numbers, and whatever else the form's `columns` understands."""

_MOST = 2048
FEW = 8


class Shaped(Protocol):
    """The form of a line: it knows which of the values is what."""

    def columns(self, values: Sequence[tuple[Any, ...]]) -> Mapping[str, Any]:
        """The columns of several lines of this form; `values` has a tuple for each value of a line."""


def numbers_of(cells: tuple[str, ...], factor: float = 1.0) -> Numbers | list[float | None]:
    """Texts of numbers as numbers; masked where one turns out to be none. A `nan` is a number: it was logged.

    A few are given as a list, in which what is no number is `None`: an array would take longer to make than to use.
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
        for columns, rows in _stretches(lines):
            if rows > FEW:
                builder.add_columns(columns, rows)
            else:
                for row in _rows(columns, rows):
                    builder.add(row)


def iter_lines(lines: Iterable[Line]) -> Iterator[Mapping[str, Any]]:
    """The same lines as rows."""
    for columns, rows in _stretches(lines):
        yield from _rows(columns, rows)


def _stretches(lines: Iterable[Line]) -> Iterator[tuple[Mapping[str, Any], int]]:
    form: Shaped | None = None
    held: list[Sequence[Any]] = []
    for next_form, values in lines:
        if form is not None and (next_form is not form or len(held) == _MOST):
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
