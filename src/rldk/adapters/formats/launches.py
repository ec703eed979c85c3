"""Rows that say no step: the launch of the trainer they belong to, and the step of each, by the bar or by counting."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from rldk.adapters.formats.bars import Bars, Mark
from rldk.adapters.formats.pace import Length, by_interval, keeps_pace, not_behind

__all__ = ["HELD_OUT", "SUMMARY", "TRAIN", "Launches"]

TRAIN, HELD_OUT, SUMMARY = 0, 1, 2
_BEGIN = re.compile(rb"(Num Epochs|Total (?:optimization )?steps) = (\d[\d,]*)")


@dataclass(slots=True)
class _Launch:
    kinds: list[int] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    first_row: int = 0
    length: Length = field(default_factory=Length)
    counters: list[tuple[int, int]] = field(default_factory=list)
    """The step and the end that the bar before each row showed; for rows that are not of training, the latest of each."""
    latest: dict[int, dict[int, int]] = field(default_factory=dict)

    @property
    def trained(self) -> list[int]:
        return [position for position, kind in enumerate(self.kinds) if kind == TRAIN]


@dataclass(slots=True)
class Launches:
    """Collects what each row tells of its place, and then says the steps.

    Another launch begins where the epoch falls back, and after the row that sums a launch up unless the epoch goes on.
    """

    bars: Bars = field(default_factory=Bars)
    rows: int = 0
    _found: list[_Launch] = field(default_factory=list)
    _length: Length = field(default_factory=Length)

    def see(self, piece: bytes) -> None:
        """Take a piece of a line that is no row: a bar, or what the trainer says of its length when it begins."""
        if self.bars.see(piece) or b" = " not in piece:
            return
        for name, number in _BEGIN.findall(piece):
            if name == b"Num Epochs":
                self._length = Length(epochs=int(number.replace(b",", b"")))
            else:
                self._length.steps = int(number.replace(b",", b""))

    def add(self, kind: int, epoch: float | None) -> None:
        """Take the next row."""
        last = self._found[-1] if self._found else None
        here = epoch if epoch is not None else (last.epochs[-1] if last else 0.0)
        if last is None or here < last.epochs[-1] or (last.kinds[-1] == SUMMARY and here <= last.epochs[-1]):
            last = _Launch(first_row=self.rows, length=self._length)
            self._found.append(last)
        last.kinds.append(kind)
        last.epochs.append(here)
        last.counters.append(self.bars.last)
        if kind != TRAIN:
            last.latest[len(last.kinds) - 1] = self.bars.latest()
        self.bars.row(self.rows)
        self.rows += 1

    def steps(self) -> tuple[list[int], str]:
        """The step of each row, and how it was found."""
        by_bar = self._by_bar()
        if by_bar is not None:
            return by_bar, "the rows say no step: each has the one its progress bar stood at"
        if (by_counter := self._by_each(_by_counter)) is not None:
            return by_counter, "the rows say no step: each has the one of the progress bar before it"
        if (by_pace := self._by_each(_by_interval)) is not None:
            return by_pace, "the rows say no step: each has the one that its epoch and the number of steps give"
        how = "the rows say no step: they are numbered from 1" + (" in each launch" if len(self._found) > 1 else "")
        return self._by_count(), how

    def _by_bar(self) -> list[int] | None:
        launches = self.bars.launches()
        if not self._found or len(launches) != len(self._found):
            return None
        steps: list[int] = []
        for launch, marks in zip(self._found, launches, strict=True):
            if not _belong_together(launch, marks):
                return None
            steps += [mark.step for mark in marks[: len(launch.kinds)]]
        return steps

    def _by_each(self, way: Callable[[_Launch], list[int] | None]) -> list[int] | None:
        """The steps by a way that has to do for every launch."""
        steps: list[int] = []
        for launch in self._found:
            found = way(launch)
            if found is None:
                return None
            steps += found
        return steps

    def _by_count(self) -> list[int]:
        """Numbers from 1 in each launch; one that goes on in the middle of the one before is numbered from there."""
        steps: list[int] = []
        earlier: list[float] = []
        for launch in self._found:
            number = bisect_left(earlier, launch.epochs[0]) if earlier and launch.epochs[0] > earlier[0] else 0
            earlier = earlier[:number]
            for kind, epoch in zip(launch.kinds, launch.epochs, strict=True):
                if kind != HELD_OUT or not earlier:
                    earlier.append(epoch)
                steps.append(len(earlier))
        return steps


def _belong_together(launch: _Launch, marks: list[Mark]) -> bool:
    """Whether the k-th mark is the k-th row's.

    There must be a mark for each row, more of them only if the launch was killed with rows in its buffer; a row that
    stands at a mark must be that mark's, and the epochs must grow as the steps do.
    """
    rows = len(launch.kinds)
    if len(marks) < rows or (len(marks) > rows and SUMMARY in launch.kinds):
        return False
    if any(mark.row >= 0 and mark.row != launch.first_row + position for position, mark in enumerate(marks)):
        return False
    return keeps_pace(launch.epochs, [mark.step for mark in marks[:rows]])


def _by_counter(launch: _Launch) -> list[int] | None:
    """The steps that the bar showed before each row; `None` where it was not there, or not at the rows' pace.

    Rows that a buffer held back come several to a counter, so the counter has to grow from row to row.
    """
    rows = launch.trained
    totals = {launch.counters[row][1] for row in rows}
    if len(totals) != 1 or -1 in totals:
        return None
    counted = not_behind([launch.counters[row][0] for row in rows])
    if any(later <= earlier for earlier, later in pairwise(counted)):
        return None
    if not keeps_pace([launch.epochs[row] for row in rows], counted):
        return None
    return _with_others(launch, counted, totals.pop())


def _by_interval(launch: _Launch) -> list[int] | None:
    counted = by_interval([launch.epochs[row] for row in launch.trained], launch.length)
    return None if counted is None else _with_others(launch, counted, -1)


def _with_others(launch: _Launch, counted: list[int], total: int) -> list[int]:
    """The steps of all rows: an evaluation is of the step that the trainer's bar stood at, or of the row before it."""
    steps: list[int] = []
    trained = iter(counted)
    for row, kind in enumerate(launch.kinds):
        before = steps[-1] if steps else 0
        steps.append(next(trained) if kind == TRAIN else max(before, launch.latest[row].get(total, before)))
    return steps
