"""The steps of rows that a console prints without one.

`TrainerSteps` places the rows of the Hugging Face trainer: by the progress bar that was drawn again after each row, by the bar
before each row, by the epoch where the trainer announced its number of steps, or else by counting. `StepCounter` counts the rows
of free text, and `Banner` notices that a program was started again in the same file."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["HELD_OUT", "SUMMARY", "TRAIN", "Banner", "StepCounter", "TrainerSteps"]

_BAR = re.compile(rb"\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[")
"""A bar without a description before it: those of loading, mapping and sampling have one."""
_COUNTER = re.compile(rb"(?:^|\])\s*(?:\d+%\|[^|]*\|\s*)?(\d+)/(\d+) \[\d+:\d\d[^\]]*")
"""The same where the bar itself was left out or several stand one after the other, as copied logs have them."""
_MOST_ENDS = 16


@dataclass(slots=True)
class Mark:
    """A place where the bar made room for a row: the step it stood at, and which row came just there (-1: none)."""

    step: int
    total: int
    row: int


@dataclass(slots=True)
class Bars:
    """Follows the bar through the pieces of a console log.

    To print a row, the trainer wipes the bar, prints, and draws the bar again at the same step. The bar goes to the
    error stream at once, while the rows of the output stream may be held back in a buffer and come many at a time: the
    step at which a row shows up in the file says little, but the order of the redraws is the order of the rows.
    """

    marks: list[Mark] = field(default_factory=list)
    last: tuple[int, int] = (-1, -1)
    _left: dict[int, int] = field(default_factory=dict)
    _wiped: bool = False
    _row: int = -1

    def see(self, piece: bytes) -> bool:
        """Take a piece of a line, as the carriage returns cut it; whether it was of a bar."""
        if len(piece) >= 8 and piece.isspace():
            self._wiped = True
            return True
        match = _BAR.match(piece)
        if match is None or piece.find(b"%|", match.end()) >= 0:
            return b"/" in piece and self._see_counters(piece)
        drawn = int(match[1]), int(match[2])
        if self._wiped and (self._row >= 0 or drawn == self.last):
            self.marks.append(Mark(*drawn, self._row))
        if drawn[1] != self.last[1]:
            self._leave()
        self._wiped, self._row, self.last = False, -1, drawn
        return True

    def _see_counters(self, piece: bytes) -> bool:
        found = False
        for match in _COUNTER.finditer(piece):
            self._leave()
            self._wiped, self._row, self.last = False, -1, (int(match[1]), int(match[2]))
            found = True
        return found

    def _leave(self) -> None:
        """Remember where a bar stands before one with another end is drawn."""
        step, total = self.last
        if total in self._left or len(self._left) < _MOST_ENDS:
            self._left[total] = step

    def latest(self) -> dict[int, int]:
        """Where the bar with each end was drawn last: an evaluation has a bar of its own, with another end."""
        return {**self._left, self.last[1]: self.last[0]}

    def row(self, number: int) -> None:
        """Take a row; where several come before the bar is drawn again, none of them is at home there."""
        self._row = number if self._wiped and self._row == -1 else -2

    def launches(self) -> list[list[Mark]]:
        """The marks of each launch: a bar that falls back, or has another end, is another one's."""
        found: list[list[Mark]] = []
        for mark in self.marks:
            if not found or mark.total != found[-1][-1].total or mark.step < found[-1][-1].step:
                found.append([])
            found[-1].append(mark)
        return found


_ROUNDED = 0.0051
"""The trainer prints epochs with two decimals, and newer ones with more."""


@dataclass(slots=True)
class Length:
    """How many steps and epochs a launch is going to have, as it says when it begins; 0 where it does not."""

    steps: int = 0
    epochs: int = 0


def keeps_pace(epochs: Sequence[float], steps: Sequence[int]) -> bool:
    """Whether the epochs grow as the steps do."""
    pace = epochs[-1] / max(1, steps[-1]) if steps else 0.0
    return all(abs(epoch - pace * step) <= 0.011 + 0.02 * epoch for epoch, step in zip(epochs, steps, strict=True))


def not_behind(counters: list[int]) -> list[int]:
    """The counters, each one more where they are one behind: there is no row of step 0, and rows come at round steps."""
    apart = math.gcd(*(later - earlier for earlier, later in pairwise(counters)))
    behind = len(counters) > 2 and apart > 1 and all((counter + 1) % apart == 0 for counter in counters)
    return [counter + 1 for counter in counters] if behind or counters[:1] == [0] else counters


def by_interval(epochs: Sequence[float], length: Length) -> list[int] | None:
    """The steps of rows that come every so many; `None` unless only one answer fits.

    All rows that the launch was to have must be there. Fewer steps than a whole epoch may be announced as one, so that
    the epochs of a launch which broke off do not tell its steps.
    """
    rows = len(epochs)
    if rows < 3 or not length.steps or not length.epochs:
        return None
    pace = length.epochs / length.steps
    every = {length.steps // rows, length.steps // max(1, rows - 1), round(epochs[-1] / pace / rows)}
    every |= {number + 1 for number in every}
    found = {
        tuple(steps)
        for number in every
        if number > 0
        for steps in (_logged_steps(number, length.steps), _logged_steps(number, length.steps, first=True))
        if len(steps) == rows and _fits_epochs(epochs, steps, pace)
    }
    return list(found.pop()) if len(found) == 1 else None


def _logged_steps(every: int, steps: int, first: bool = False) -> list[int]:
    """The steps that are logged: each `every`-th, and the first where that was asked for."""
    return [1] * (first and every > 1) + list(range(every, steps + 1, every))


def _fits_epochs(epochs: Sequence[float], steps: Sequence[int], pace: float) -> bool:
    """Whether the epochs are those of the steps; within an epoch they run ahead by up to a step, the last being a short one."""
    return all(abs(epoch - pace * step) <= _ROUNDED + pace for epoch, step in zip(epochs, steps, strict=True))


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
class TrainerSteps:
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


@dataclass(slots=True)
class StepCounter:
    """Turns what a row counts by into a step that grows within a launch.

    - A step that starts over when the epoch grows is counted on.
    - An epoch alone is the step; one that starts over (an inner loop over each batch) is counted on, and one that comes
      again in a row of the same form cannot be the step, so that from there on rows are numbered.
    - Where there is neither, rows are numbered.
    """

    step: int = 0
    by: str = ""
    restarts: int = 0
    _offset: int = 0
    _last: int = -1
    _epoch: float = -1.0
    _forms: frozenset[int] = frozenset()

    def next(self, step: int | None, total: int | None, epoch: float | None, form: int) -> int:
        """The step of the next row; `form` tells rows apart that are printed for the same step."""
        if step is not None:
            self._by_step(step, total, epoch)
        elif epoch is not None and epoch == int(epoch) and self.by in ("", "epoch"):
            self._by_epoch(int(epoch), form)
        else:
            self.by = "number"
            self.step += 1
        self._epoch = self._epoch if epoch is None else epoch
        return self.step

    def launch(self) -> None:
        """Begin anew: the program was started again."""
        restarts = self.restarts + 1
        self.__init__()  # type: ignore[misc]
        self.restarts = restarts

    def _by_step(self, step: int, total: int | None, epoch: float | None) -> None:
        if epoch is not None and epoch > self._epoch >= 0 and step <= self._last:
            self._offset += max(total or 0, self._last)
        elif epoch is not None and epoch < self._epoch:
            self._offset = 0
        self.by, self._last = "step", step
        self.step = self._offset + step

    def _by_epoch(self, epoch: int, form: int) -> None:
        self.by = "epoch"
        if epoch == self._last and form in self._forms:
            self.by = "number"
            self.step += 1
            return
        if epoch < self._last:
            self._offset = self.step
        if epoch != self._last:
            self._forms = frozenset()
        self._forms |= {form}
        self._last = epoch
        self.step = self._offset + epoch


_LINES = 2


class Banner:
    """Remembers the first two lines of a file that are no rows, and notices when both come again, one after the other.

    One line would not do: a warning or a heading may be printed at every step.
    """

    def __init__(self) -> None:
        self._first: list[tuple[str, ...]] = []
        self._recent: list[tuple[str, ...]] = []
        self._complete = False
        self._again = False

    def see(self, words: tuple[str, ...]) -> None:
        """Take a line that is no row, by its words."""
        if not any(character.isalpha() for text in words for character in text):
            return
        if not self._complete:
            self._first.append(words)
            self._complete = len(self._first) == _LINES
            return
        self._recent = [*self._recent[1 - _LINES :], words][-_LINES:]
        if self._recent == self._first:
            self._again = True

    def began_again(self) -> bool:
        """Take a row: whether the program was started anew since the last one."""
        again, self._again = self._again and self._rows_seen, False
        self._rows_seen = True
        self._complete = True
        self._recent = []
        return again

    _rows_seen = False
