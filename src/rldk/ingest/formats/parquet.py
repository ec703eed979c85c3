"""A parquet table: one row per step, one column per metric."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import is_known
from rldk.core.catalog.axes import TIME_KEYS, is_axis
from rldk.core.errors import ReadError, require
from rldk.core.jsonio import to_number
from rldk.core.text import first_line
from rldk.ingest.adapter import Adapter
from rldk.runs.row_axes import parse_seconds
from rldk.runs.table import TableBuilder

__all__ = ["ParquetAdapter"]

Numbers = np.ma.MaskedArray[Any, np.dtype[np.float64]]
Cells = Numbers | list[str | None]
"""Numbers, of which the empty ones are masked, or words."""
_MAX_DEPTH = 8
_MAX_WORD = 4096  # characters
_MAX_COLUMNS = 8192


def is_of_use(pyarrow: Any, name: str, first: Any) -> bool:
    """Whether a column may hold numbers, or words that place a row: by its type, and for words by its first cells."""
    types = pyarrow.types
    kind = first.type.value_type if types.is_dictionary(first.type) else first.type
    if types.is_nested(kind):
        return bool(types.is_struct(kind))
    if _is_text(pyarrow, kind):
        cells = [cell for cell in _words(pyarrow, first) if cell is not None]
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
    if pyarrow.types.is_dictionary(values.type) and not _is_text(pyarrow, values.type.value_type):
        values = values.dictionary_decode()
    if not pyarrow.types.is_struct(values.type):
        yield path, values
    elif depth < _MAX_DEPTH:
        for field, inner in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(pyarrow, f"{path}/{field.name}", inner, depth + 1)


def _cells(pyarrow: Any, name: str, values: Any) -> Cells | None:
    """Numbers with their gaps, or words; `None` where an array has neither."""
    types, kind = pyarrow.types, values.type
    if types.is_dictionary(kind) or _is_text(pyarrow, kind):
        words = _words(pyarrow, values)
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


def _words(pyarrow: Any, values: Any) -> list[str | None]:
    """The words of an array, long ones cut off; those that stand in many rows are there once."""
    if pyarrow.types.is_string_view(values.type):
        values = values.cast(pyarrow.large_string())
    if not pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    found: list[str | None] = [None if word is None else word[:_MAX_WORD] for word in values.dictionary.to_pylist()]
    return [None if place is None else found[place] for place in values.indices.to_pylist()]


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


_MAGIC = b"PAR1"
_BATCH_BYTES = 4 << 20
_MOST_ROWS, _FEWEST_ROWS = 65_536, 64


class ParquetAdapter(Adapter):
    """Reads a parquet file a few thousand rows at a time.

    The format has a mark for an empty cell, so a `NaN` is a value that was logged. Structures are unfolded, times
    become seconds since 1970; lists, and words that do not place a row, are left out.
    """

    name: ClassVar[str] = "parquet"
    title: ClassVar[str] = "parquet table"

    def can_handle(self) -> bool:
        found = not self.source.is_folder and self.source.head.startswith(_MAGIC)
        self.why = "it begins like a parquet file" if found else "it does not begin like a parquet file"
        return found

    def fill(self, builder: TableBuilder) -> None:
        for columns, rows in self._batches():
            builder.add_columns(columns, rows)

    def _batches(self) -> Iterator[tuple[dict[str, Cells], int]]:
        pyarrow = require("pyarrow", extra="parquet", purpose="Reading parquet files")
        parquet = require("pyarrow.parquet", extra="parquet", purpose="Reading parquet files")
        path, damage = self.source.path, (pyarrow.ArrowException, OSError, ValueError)
        with _frugal(pyarrow), contextlib.ExitStack() as stack:
            try:
                # words are read as a list and the places where each stands: one long word may stand in all rows
                texts = [field.name for field in parquet.read_schema(path) if _is_text(pyarrow, field.type)]
                options = {"buffer_size": 1 << 20, "pre_buffer": False, "read_dictionary": texts}
                file = stack.enter_context(parquet.ParquetFile(path, **options))
            except damage as error:
                raise ReadError(f"{path} is not a complete parquet file ({first_line(error)}): it may be cut off.") from None
            total, done, size = file.metadata.num_rows, 0, path.stat().st_size
            columns = self._columns_of_use(pyarrow, file, damage)
            if not columns:
                return
            at_once = _rows_at_once(file)
            for group in range(file.num_row_groups):
                try:
                    for batch in file.iter_batches(at_once, row_groups=[group], columns=columns, use_threads=False):
                        yield columns_of_batch(pyarrow, batch), batch.num_rows
                        done += batch.num_rows
                        if self.progress is not None:
                            self.progress(size * done // total, size)
                except damage as error:
                    self.problems.damage = f"row group {group + 1} is damaged ({first_line(error)})"

    def _columns_of_use(self, pyarrow: Any, file: Any, damage: tuple[type[Exception], ...]) -> list[str]:
        """The names of the columns to read; the rest is never taken from the disk."""
        names = file.schema_arrow.names
        wanted = (name for n, name in enumerate(names) if n < _MAX_COLUMNS or is_axis(name) or is_known(name))
        looked_at = list(islice(wanted, 2 * _MAX_COLUMNS))
        chosen = []
        for name in looked_at:
            try:
                batch = next(file.iter_batches(_FEWEST_ROWS, columns=[name], use_threads=False), None)
            except damage:
                batch = None
            if batch is not None and batch.num_columns and is_of_use(pyarrow, name, batch.column(0)):
                chosen.append(name)
        if left := len(looked_at) - len(chosen):
            self.notes.append(f"{left} column(s) of words, lists or bytes left out")
        if left := len(names) - len(looked_at):
            self.notes.append(f"more than {_MAX_COLUMNS:,} columns: {left} of them were left out")
        return chosen


@contextlib.contextmanager
def _frugal(pyarrow: Any) -> Iterator[None]:
    """Have arrow take its memory from the system, and give it back: its own allocator keeps twice what it needs."""
    usual = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    try:
        yield
    finally:
        pyarrow.set_memory_pool(usual)


def _rows_at_once(file: Any) -> int:
    """So many rows that a batch takes a few megabytes."""
    metadata = file.metadata
    size = sum(int(metadata.row_group(group).total_byte_size) for group in range(metadata.num_row_groups))
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _BATCH_BYTES * int(metadata.num_rows) // max(size, 1)))
