"""Rows of one shape, decoded at once: a strict decoder made for the shape, and the way from its rows to columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from struct import Struct
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import astuple

from rldk.runs.table import TableBuilder

__all__ = ["RowDecoder", "signature_of"]

_MAX_WIDTH = 512
_SCALARS = {float: float, int: float, str: str}
_TYPES = {**_SCALARS, list: list}
_NUMBERS = frozenset({float, int})
_ODD_KEY = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')  # what msgspec has no field names for


def signature_of(row: Mapping[str, Any], lifted: str | None) -> tuple[object, ...] | None:
    """Keys and kinds of value; `None` for a row that has a key or a value of which a strict decoder can make nothing."""
    if len(row) > _MAX_WIDTH:
        return None
    parts: list[object] = []
    for key, value in row.items():
        kind = type(value)
        if _ODD_KEY.search(key):
            return None
        if kind is dict and key == lifted:
            inner = signature_of(value, None)
            if inner is None or any(type(cell) in (dict, list) for cell in value.values()):
                return None
            parts += [key, inner]
        elif _is_numeric(value):
            parts += [key, tuple(value)]
        elif kind in (dict, list):
            parts += [key, kind]
        elif kind in _SCALARS:
            parts += [key, _SCALARS[kind]]
        else:
            return None
    return tuple(parts)


def _is_numeric(value: Any) -> bool:
    """Whether it is an object of nothing but numbers, under keys that a strict decoder can name."""
    return (
        type(value) is dict
        and 0 < len(value) <= _MAX_WIDTH
        and all(type(inner) in _NUMBERS and not _ODD_KEY.search(key) for key, inner in value.items())
    )


class RowDecoder:
    """A decoder for rows of one shape, and the way from its rows to columns."""

    def __init__(self, row: Mapping[str, Any], builder: TableBuilder) -> None:
        lifted = row.get(builder.lift) if builder.lift is not None else None
        inner = lifted if isinstance(lifted, dict) else None
        self.shape = builder.shape(tuple(row), tuple(inner or ()), pinned=True)
        self._inner = inner
        self._row = row
        self._lift = builder.lift if inner is not None else None
        self._differing: set[str] = set()
        self._make()

    def _make(self) -> None:
        known = {key: _struct(self._row[key], {}) for key in self._differing}
        if self._lift is not None and self._inner is not None:
            known[self._lift] = _struct(self._inner, {})
        decoder = msgspec.json.Decoder(_struct(self._row, known))
        self.decode_lines: Callable[[bytes | memoryview], list[Any]] = decoder.decode_lines

    def columns(self, rows: list[Any]) -> list[tuple[str, Any]]:
        """The rows as columns: arrays for numbers, lists for the rest; those of the lifted object first, as a table has them."""
        if self._lift is None and all(type(value) in _NUMBERS for value in self._row.values()):
            return _matrix(list(self._row), rows)
        lifted: list[tuple[str, Any]] = []
        made: list[tuple[str, Any]] = []
        for (key, value), cells in zip(self._row.items(), zip(*map(astuple, rows), strict=True), strict=True):
            if key == self._lift and self._inner is not None:
                lifted = self._lifted(cells, self._inner)
            elif key in self._differing:
                made += _matrix([f"{key}/{name}" for name in value], cells)
            else:
                made.append((key, np.array(cells, dtype=np.float64) if type(value) in _NUMBERS else cells))
        self._learn_differing(made)
        return lifted + made

    def _learn_differing(self, made: list[tuple[str, Any]]) -> None:
        """Have objects of nothing but numbers that differ from row to row decoded from now on, and not left unparsed."""
        found = {key for key, cells in made if _is_numeric(self._row.get(key)) and cells[0] != cells[-1]}
        if found:
            self._differing |= found
            self._make()

    def _lifted(self, cells: Sequence[Any], inner: Mapping[str, Any]) -> list[tuple[str, Any]]:
        if all(type(value) in _NUMBERS for value in inner.values()):
            return _matrix(list(inner), cells)
        columns = zip(*map(astuple, cells), strict=True)
        return [
            (name, np.array(column, dtype=np.float64) if type(inner[name]) in _NUMBERS else column)
            for name, column in zip(inner, columns, strict=True)
        ]


def _matrix(names: list[str], rows: Sequence[Any]) -> list[tuple[str, Any]]:
    """Rows of which every cell is a float, as arrays."""
    packed = b"".join(starmap(Struct(f"{len(names)}d").pack, map(astuple, rows)))  # twice as fast as an array of the cells
    cells = np.frombuffer(packed, dtype=np.float64).reshape(len(rows), len(names))
    return list(zip(names, np.ascontiguousarray(cells.T), strict=True))


def _struct(row: Mapping[str, Any], known: Mapping[str, Any]) -> type[msgspec.Struct]:
    """A strict type for rows like this one: every key is needed, and no other is taken."""
    fields = [(f"f{n}", known.get(key) or _TYPES.get(type(value), msgspec.Raw)) for n, (key, value) in enumerate(row.items())]
    names = {f"f{n}": key for n, key in enumerate(row)}
    return msgspec.defstruct("Row", fields, rename=names, forbid_unknown_fields=True, gc=False)
