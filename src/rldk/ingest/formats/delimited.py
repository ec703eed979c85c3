"""Comma-, tab- or semicolon-separated text with a header: CleanRL, Stable-Baselines3's `progress.csv`, exports of W&B."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rldk.core.errors import ReadError
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.text_table import Cells, Columns, Header, header_of, is_comment
from rldk.ingest.unmapped_keys import placeable
from rldk.log.problems import LineProblems
from rldk.runs.table import TableBuilder

__all__ = ["DelimitedAdapter", "fill_table"]

_BATCH, _BATCH_BYTES = 2048, 4 << 20
_MAX_NUMBER, _MAX_CELL = 64, 4096  # characters
_MONITOR = {"r": "reward_mean", "l": "rollout_length_mean", "t": "wall_time"}
_CHART = re.compile(r"(.+) - (.+?)(__MIN|__MAX)?")
_CHART_STEPS = ("Step", "Relative Time (Process)", "Relative Time (Wall)", "Wall Time", "Time")


def fill_table(adapter: Adapter, builder: TableBuilder) -> None:
    """Put the rows of delimited text into a table of columns."""
    header = header_of(adapter.source) if adapter.source.is_text else None
    if header is None:
        raise ReadError(f"{adapter.source.path} is not a table with a header.")
    adapter.notes += header.notes
    if _is_monitor(header):
        adapter.framework, adapter.field_map = "sb3", {**_MONITOR, **adapter.field_map}
        adapter.notes.append("each row is an episode, not a step of the optimizer")
    charts = _charts(header)
    if charts and any(name.endswith("__MIN") for name in header.names):
        adapter.notes.append("the columns __MIN and __MAX (the range over grouped runs) were left out")
    read = Columns(header.delimiter)
    for rows, columns in _iter_columns(adapter, header, read):
        for part in _by_run(columns, charts, rows):
            builder.add_columns(part, rows)
    for name in placeable(read.words, adapter.field_map):
        if name not in read.met:
            adapter.notes.append(f"column {name!r} has no numbers but words such as {read.words[name]!r}, and was left out")


def _iter_columns(adapter: Adapter, header: Header, read: Columns) -> Iterator[tuple[int, dict[str, Cells]]]:
    """Many rows at a time: how many, and their columns; `read` knows afterwards which had words and no numbers."""
    numbered = _after_header(adapter, header)
    while batch := _batch(numbered):
        lines = [line for _, line in batch if line != header.line]
        table = None if adapter.problems.unterminated is not None else _numbers(lines, header)
        if table is not None:
            read.met.update(header.names)
            yield len(lines), {name: table[:, place] for place, name in enumerate(header.names)}
            continue
        for rows in _rows(batch, numbered, header, adapter.problems, adapter.notes):
            read.look(rows)
            by_column = zip(header.names, zip(*rows, strict=True), strict=False)
            columns = {name: read.column(name, cells) for name, cells in by_column}
            yield len(rows), {name: column for name, column in columns.items() if column is not None}


def _batch(numbered: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The next lines: so many that they are quick to read together, and not more than a few megabytes."""
    found: list[tuple[int, bytes]] = []
    size = 0
    for number, line in numbered:
        found.append((number, line))
        size += len(line)
        if len(found) == _BATCH or size > _BATCH_BYTES:
            break
    return found


def _after_header(adapter: Adapter, header: Header) -> Iterator[tuple[int, bytes]]:
    """The numbered lines after the header."""
    numbered = adapter.source.lines(adapter.problems, adapter.progress)
    for number, line in numbered:
        if line == header.line:
            break
        if not is_comment(line):
            adapter.problems.add(number, "before the header")
    return numbered


def _numbers(lines: list[bytes], header: Header) -> npt.NDArray[np.float64] | None:
    """The cells of many lines at once where all of them are there and are finite numbers; else `None`.

    Numpy's reader makes a table of 100 000 rows 2.4 times as fast to read as cell by cell.
    """
    delimiter, between = header.delimiter.encode(), len(header.names) - 1
    longest = _MAX_NUMBER * len(header.names)
    if not any(map(bytes.strip, lines)) or any(len(line) > longest or line.count(delimiter) != between for line in lines):
        return None
    try:
        cells = np.loadtxt(lines, delimiter=header.delimiter, comments=None, ndmin=2)
    except ValueError:
        return None
    return cells if cells.shape == (len(lines), len(header.names)) and bool(np.isfinite(cells).all()) else None


def _rows(
    batch: list[tuple[int, bytes]], rest: Iterator[tuple[int, bytes]], header: Header, problems: LineProblems, notes: list[str]
) -> Iterator[list[list[str]]]:
    """Rows of cells, many at a time. One of another length is counted and located; a repeated header is passed over.

    The last cell of a last line without newline may be cut off: it is emptied, and a note says so. From the first quotation
    mark on, the rest is taken too.
    """
    if any(b'"' in line for _, line in batch):
        for part in _quoted(batch, rest, header, problems):
            yield _whole(part, header, problems, notes)
        return
    delimiter, between = header.delimiter.encode(), len(header.names) - 1
    rows: list[tuple[int, list[str]]] = []
    for number, line in batch:
        if line == header.line:
            continue
        if line.count(delimiter) == between:
            cells = line.decode("utf-8", "replace").split(header.delimiter)
            rows.append((number, cells if len(line) <= _MAX_CELL else [cell[:_MAX_CELL] for cell in cells]))
        else:  # not taken apart: a line may have millions of cells
            problems.add(number, _uneven(line.count(delimiter) + 1, between + 1))
    yield _whole(rows, header, problems, notes)


def _quoted(
    batch: list[tuple[int, bytes]], rest: Iterator[tuple[int, bytes]], header: Header, problems: LineProblems
) -> Iterator[list[tuple[int, list[str]]]]:
    """The same where a cell may be quoted, and so may hold what separates cells and lines."""
    position = 0

    def texts() -> Iterator[str]:
        nonlocal position
        for lines in (batch, rest):
            for position, line in lines:  # noqa: B007 - the reader's errors are located by it
                if line != header.line:
                    yield line.decode("utf-8", "replace") + "\n"

    rows = csv.reader(texts(), delimiter=header.delimiter)
    found: list[tuple[int, list[str]]] = []
    size = 0
    while True:
        try:
            cells = next(rows)
            found.append((position, cells))
            size += sum(map(len, cells))
        except StopIteration:
            yield found
            return
        except csv.Error as error:
            problems.add(position, str(error))
        if len(found) == _BATCH or size > _BATCH_BYTES:
            yield found
            found, size = [], 0


def _whole(rows: list[tuple[int, list[str]]], header: Header, problems: LineProblems, notes: list[str]) -> list[list[str]]:
    """The rows that have a cell for each name."""
    width = len(header.names)
    kept = []
    for number, cells in rows:
        if len(cells) != width:
            problems.add(number, _uneven(len(cells), width))
            continue
        if number == problems.unterminated and cells[-1]:
            cells[-1] = ""
            notes.append(f"line {number} has no newline: its last cell ({header.names[-1]}) may be cut off and was left out")
        kept.append(cells)
    return kept


def _uneven(cells: int, width: int) -> str:
    return f"{cells} cells where the header has {width}"


class DelimitedAdapter(Adapter):
    """Reads a table with a header.

    `monitor.csv` of Stable-Baselines3 has a row for each episode, under the names `r`, `l` and `t`. A chart that
    Weights & Biases exports has a column for each run, `name of the run - train/reward`, and two more for its range.
    """

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "CSV or TSV with a header"

    def can_handle(self) -> bool:
        self.why = "no table with a header"
        header = header_of(self.source) if self.source.is_text else None
        if header is None:
            return False
        if _is_monitor(header):
            self.why = "the monitor file of Stable-Baselines3"
            return True
        names = list(header.names)
        if charts := _charts(header):
            names = [metric for columns in charts.values() for metric in columns.values()]
        known = placeable(names, self.field_map)
        self.why = f"a table in which {len(known)} of {len(names)} columns are known metrics"
        return bool(known)

    def fill(self, builder: TableBuilder) -> None:
        fill_table(self, builder)


def _is_monitor(header: Header) -> bool:
    return {"r", "l", "t"} <= set(header.names)


def _charts(header: Header) -> dict[str, dict[str, str]]:
    """Run -> column -> metric, where the table is an exported chart."""
    if header.names[0] not in _CHART_STEPS:
        return {}
    found: dict[str, dict[str, str]] = {}
    for name in header.names[1:]:
        match = _CHART.fullmatch(name)
        if match is None:
            return {}
        if match.group(3) is None and match.group(2) != "_step":
            found.setdefault(match.group(1), {})[name] = match.group(2)
    return found


def _by_run(columns: dict[str, Cells], charts: dict[str, dict[str, str]], rows: int) -> Iterator[dict[str, Cells]]:
    """The columns of each run that has a name of its own in the header; all of them where none has."""
    if not charts:
        yield columns
        return
    own = {name for names in charts.values() for name in names}
    shared = {name: cells for name, cells in columns.items() if name not in own and not _CHART.fullmatch(name)}
    for run, names in charts.items():
        metrics = {metric: columns[name] for name, metric in names.items() if name in columns}
        yield {**shared, **metrics, "run": [run] * rows}
