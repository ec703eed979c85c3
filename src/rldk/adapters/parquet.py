"""A parquet table: a row a step, a column a metric."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats.arrow import Cells, columns_of_batch, is_of_use
from rldk.core.errors import ReadError, require
from rldk.runs.table import TableBuilder

__all__ = ["ParquetAdapter"]

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

    def read(self) -> Iterator[Mapping[str, Any]]:
        for columns, rows in self._batches():
            lists = {name: cells if isinstance(cells, list) else cells.tolist() for name, cells in columns.items()}
            for row in range(rows):
                yield {name: cells[row] for name, cells in lists.items() if cells[row] is not None}

    def _batches(self) -> Iterator[tuple[dict[str, Cells], int]]:
        pyarrow = require("pyarrow", extra="parquet", purpose="Reading parquet files")
        parquet = require("pyarrow.parquet", extra="parquet", purpose="Reading parquet files")
        path, damage = self.source.path, (pyarrow.ArrowException, OSError, ValueError)
        with _frugal(pyarrow), contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(parquet.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False))
            except damage as error:
                raise ReadError(f"{path} is not a whole parquet file ({_first_line(error)}): it may be cut off.") from None
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
                    self.problems.damage = f"row group {group + 1} is damaged ({_first_line(error)})"

    def _columns_of_use(self, pyarrow: Any, file: Any, damage: tuple[type[Exception], ...]) -> list[str]:
        """The names of the columns to read; the rest is never taken from the disk."""
        chosen = []
        for name in file.schema_arrow.names:
            try:
                batch = next(file.iter_batches(_FEWEST_ROWS, columns=[name], use_threads=False), None)
            except damage:
                batch = None
            if batch is not None and batch.num_columns and is_of_use(pyarrow, name, batch.column(0)):
                chosen.append(name)
        left = len(file.schema_arrow.names) - len(chosen)
        if left:
            self.notes.append(f"{left} column(s) of words, lists or bytes left out")
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


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]
