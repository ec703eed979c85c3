"""Where each row of a table belongs: its step, its time and its run, by the keys that say so.

Times are seconds, ISO dates, `5m 18s` or `1:02:03`; a step may be written as `10/547`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.catalog.axes import RUN_KEYS, STEP_KEYS, TIME_KEYS, parse_step
from rldk.core.text import counted
from rldk.runs.table import NUMBER, TEXT, Column, Rows, Table, TableBuilder

__all__ = ["count_over_epochs", "find_runs", "find_step_keys", "find_steps", "find_times", "first_words", "parse_seconds"]

_STANDING = 16
_MOST_RUN_IDS = 1000


@dataclass(frozen=True, slots=True)
class _StepColumn:
    """A key that may hold the step: the rows in which it does, its values, and how good it is, 0 for not at all."""

    name: str
    own: npt.NDArray[np.bool_]
    values: npt.NDArray[np.float64]
    worth: float


def find_steps(
    table: Table, given: str | None, kept: Rows
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], list[str]]:
    """Each row's step, and which rows log it: the others have that of the row before, and a table without any is numbered."""
    candidates = _step_columns(table, [given] if given else STEP_KEYS, kept)
    best = max(candidates, key=lambda column: column.worth, default=None)
    if best is None or not best.worth:
        steps = np.zeros(table.rows, dtype=np.int64)
        steps[kept] = np.arange(1, len(kept) + 1)
        why = "the step never changes"
        if not any(column.own[kept].any() for column in candidates):
            why = "no logged step is a whole number" if candidates else "no step is logged"
        return steps, np.zeros(table.rows, dtype=bool), [f"{why}; rows are numbered from 1"] if len(kept) else []
    seen = np.maximum.accumulate(np.where(best.own, np.arange(table.rows), -1))
    first = int(np.flatnonzero(best.own)[0])
    steps = np.where(best.own, best.values, 0)[np.where(seen < 0, first, seen)].astype(np.int64)
    missing = int((~best.own[kept]).sum())
    return steps, best.own, [f"{counted(missing, 'row')} without a step: the previous row's step is used"] if missing else []


def count_over_epochs(steps: npt.NDArray[np.int64], own: npt.NDArray[np.bool_], epoch: Column, named: list[Rows]) -> list[str]:
    """Count the steps of each run on, in place, where they start over with each epoch; returns a note if there are any.

    `own` marks the rows that log a step; the others keep the step of the row before them.
    """
    counted = False
    for rows in named:
        stepped = own[rows]
        if not stepped.any():
            continue
        chosen = rows[stepped]
        first_of_epoch = _epoch_offsets(steps[chosen], epoch.values[chosen])
        if first_of_epoch is not None:
            before = np.maximum(np.cumsum(stepped) - 1, 0)
            steps[rows] = (steps[chosen] + first_of_epoch)[before]
            counted = True
    return ["the step starts over with each epoch; steps are counted on"] if counted else []


def _epoch_offsets(steps: npt.NDArray[np.int64], epochs: npt.NDArray[np.float64]) -> npt.NDArray[np.int64] | None:
    """What each row's step is raised by; `None` unless the step falls wherever the epoch rises, and it rises by one.

    An epoch that falls is a restart or a resume of the run: its rows have the steps of that epoch again.
    """
    if not (np.isfinite(epochs) & (epochs == np.floor(epochs))).all():
        return None
    rises = np.flatnonzero(np.diff(epochs) > 0)
    if not len(rises) or (np.diff(epochs)[rises] != 1).any() or (np.diff(steps)[rises] >= 0).any():
        return None
    numbers, places = np.unique(epochs, return_inverse=True)
    last = np.full(len(numbers), steps.min())
    np.maximum.at(last, places, steps)
    length = last + (steps.min() == 0)
    if length.astype(np.float64).sum() > 2**62:
        return None
    offsets: npt.NDArray[np.int64] = (np.cumsum(length) - length)[places]
    return offsets


def find_step_keys(rows: Sequence[Mapping[str, Any]], whole: bool) -> Sequence[str]:
    """The key that holds the step of rows that are not in a table; none where they have to be numbered.

    Without the `whole` log, a step that does not move in these rows may do so later.
    """
    builder = TableBuilder()
    builder.add_all({key: row[key] for key in STEP_KEYS if key in row} for row in rows)
    table = builder.finish()
    candidates = _step_columns(table, STEP_KEYS, np.arange(table.rows, dtype=np.intp))
    best = max(candidates, key=lambda column: column.worth, default=None)
    if best is not None and best.worth:
        return (best.name,)
    return () if best is not None and whole else STEP_KEYS


def _step_columns(table: Table, names: Sequence[str], kept: Rows) -> list[_StepColumn]:
    """The keys that may hold the step. The first that half of the rows have is worth most, or else the most frequent."""
    found = []
    for name in names:
        if name in table.names:
            column = table.column(name)
            _read_words(column, parse_step)
            own = (column.state == NUMBER) & np.isfinite(column.values) & (np.abs(column.values) < 2**62)
            own[own] = column.values[own] == np.floor(column.values[own])
            share = float(own[kept].mean()) if len(kept) else 0.0
            if share and len(kept) >= _STANDING and np.ptp(column.values[kept][own[kept]]) == 0:
                share = 0.0  # it does not move, and cannot say where a row belongs
            found.append(_StepColumn(name, own, column.values, min(share, 0.5)))
    return found


def _read_words(column: Column, parse: Callable[[str], float | None]) -> None:
    """Turn words into numbers where they stand for one."""
    if column.codes is not None and column.words:
        parsed = [parse(word) for word in column.words]
        numbers = np.array([np.nan if number is None else number for number in parsed], dtype=np.float64)
        stands = np.array([number is not None for number in parsed])
        cells = np.flatnonzero((column.codes >= 0) & (column.state == TEXT))
        cells = cells[stands[column.codes[cells]]]
        column.values[cells], column.state[cells] = numbers[column.codes[cells]], NUMBER


def find_times(table: Table, given: str | None) -> npt.NDArray[np.float64]:
    for name in [given] if given else TIME_KEYS:
        if name in table.names:
            column = table.column(name)
            _read_words(column, parse_seconds)
            if np.isfinite(column.values).any():
                return column.values
    return np.full(table.rows, np.nan)


def first_words(table: Table, names: tuple[str | None, ...], numbers: bool = False) -> Column | None:
    """The first of several columns that says something in words, or, where a number is a name too, in numbers."""
    for name in names:
        if name is not None and name in table.names:
            column = table.column(name)
            if numbers:
                _name_numbers(column)
            if column.words:
                return column
    return None


def _name_numbers(column: Column) -> None:
    """Make words of the numbers in a column of names: the run 3 is the run `3`."""
    codes = np.full(len(column.state), -1, dtype=np.int32) if column.codes is None else column.codes
    bare = (column.state == NUMBER) & (codes < 0)
    if bare.any():
        values, places = np.unique(column.values[bare], return_inverse=True)
        words = dict.fromkeys((*column.words, *(f"{value:.15g}" for value in values)))
        place_of = {word: place for place, word in enumerate(words)}
        codes[bare] = np.array([place_of[f"{value:.15g}"] for value in values], dtype=np.int32)[places]
        column.codes, column.words = codes, tuple(words)


def find_runs(table: Table, given: str | None, kept: Rows) -> tuple[list[tuple[str | None, Rows]], list[str]]:
    """The rows of each run that the log names, in the order in which they begin; all of them where it names none."""
    if not len(kept):
        return [], []
    column = first_words(table, (given, *RUN_KEYS), numbers=True)
    if column is None or column.codes is None:
        return [(None, kept)], []
    order = np.argsort(column.codes[kept], kind="stable")
    groups = np.split(kept[order], np.flatnonzero(np.diff(column.codes[kept][order])) + 1)
    if len(groups) > _MOST_RUN_IDS and len(kept) < 4 * len(groups):
        note = f"{len(groups)} run ids in {len(kept)} rows: they name the rows and not the runs, and are left out"
        return [(None, kept)], [note]
    names: list[str | None] = [*column.words, None]
    return [(names[column.codes[rows[0]]], rows) for rows in sorted(groups, key=lambda rows: int(rows[0]))], []


_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|ms|m|s)(?![a-z])")
_CLOCK = re.compile(r"(?:(\d+) days?, )?(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?")


def parse_seconds(text: str) -> float | None:
    """Seconds that a text stands for: since 1970 for a date, a duration otherwise; `None` if it is neither."""
    text = text.strip()[:64]
    if match := _CLOCK.fullmatch(text):
        days, first, second, third = match.groups()
        if third is None:
            return int(first) * 60.0 + int(second)
        return int(days or 0) * 86400.0 + int(first) * 3600.0 + int(second) * 60.0 + float(third)
    parts = _PART.findall(text)
    if parts and not _PART.sub("", text).strip(" ,"):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(",", "."))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
