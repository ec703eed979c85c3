"""Arrow arrays of any type as columns of numbers, or as words where they place a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.catalog.axes import TIME_KEYS, is_axis
from rldk.core.jsonio import to_number
from rldk.runs.times import parse_seconds

__all__ = ["Cells", "columns_of_batch", "is_of_use"]

Numbers = np.ma.MaskedArray[Any, np.dtype[np.float64]]
Cells = Numbers | list[str | None]
"""Numbers, of which the empty ones are masked, or words."""
_MAX_DEPTH = 8


def is_of_use(pyarrow: Any, name: str, first: Any) -> bool:
    """Whether a column may hold numbers, or words that place a row: by its type, and for words by its first cells."""
    types = pyarrow.types
    kind = first.type.value_type if types.is_dictionary(first.type) else first.type
    if types.is_nested(kind):
        return bool(types.is_struct(kind))
    if _is_text(pyarrow, kind):
        cells = [cell for cell in first.to_pylist() if cell is not None]
        return is_axis(name) or not cells or any(to_number(cell) is not None for cell in cells)
    return not (types.is_null(kind) or types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def columns_of_batch(pyarrow: Any, batch: Any) -> dict[str, Cells]:
    """The columns of a batch, structures unfolded: `{"train": {"loss": 1}}` is `train/loss`."""
    columns: dict[str, Cells] = {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        for path, leaf in _leaves(pyarrow, str(name), values, 0):
            cells = _cells(pyarrow, path, leaf)
            if cells is not None:
                columns[path] = cells
    return columns


def _leaves(pyarrow: Any, path: str, values: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(values, pyarrow.ExtensionArray):
        values = values.storage
    if pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not pyarrow.types.is_struct(values.type):
        yield path, values
    elif depth < _MAX_DEPTH:
        for field, inner in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(pyarrow, f"{path}/{field.name}", inner, depth + 1)


def _cells(pyarrow: Any, name: str, values: Any) -> Cells | None:
    """Numbers with their gaps, or words; `None` where an array has neither."""
    types, kind = pyarrow.types, values.type
    if _is_text(pyarrow, kind):
        words: list[str | None] = values.to_pylist()
        return words if is_axis(name) and name not in TIME_KEYS else _numbers_in(words, name in TIME_KEYS)
    scale = 1.0
    if types.is_timestamp(kind) or types.is_date(kind):
        values, scale = values.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64()), 1e-6
    elif types.is_duration(kind):
        values, scale = values.cast(pyarrow.duration("us"), safe=False).cast(pyarrow.int64()), 1e-6
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        return None
    there = np.asarray(values.is_valid())
    numbers = np.asarray(values.cast(pyarrow.float64(), safe=False).fill_null(np.nan), dtype=np.float64)
    return _masked(numbers * scale if scale != 1.0 else numbers, there)


def _is_text(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _numbers_in(words: list[str | None], are_times: bool) -> Numbers | None:
    """Numbers that were stored as words; `None` where there is not one."""
    numbers = [None if word is None else to_number(word) for word in words]
    if are_times:
        numbers = [
            parse_seconds(word) if number is None and word else number for word, number in zip(words, numbers, strict=True)
        ]
    there = np.array([number is not None for number in numbers], dtype=bool)
    values = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    return _masked(values, there) if there.any() else None


def _masked(values: npt.NDArray[np.float64], there: npt.NDArray[np.bool_]) -> Numbers:
    return np.ma.MaskedArray(values, mask=~there)
