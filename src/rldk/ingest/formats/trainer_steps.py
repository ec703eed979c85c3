"""The steps of rows that the Hugging Face trainer prints without one.

It tries four ways, and takes the first that fits every launch: the progress bar that is drawn again after each row, the bar
before each row, the epochs where the trainer announced its number of steps, and counting.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["HELD_OUT", "SUMMARY", "TRAIN", "TrainerSteps"]

TRAIN, HELD_OUT, SUMMARY = 0, 1, 2
"""What a row is of: a step of training, held-out data, or the whole run."""

_BAR = re.compile(rb"\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[")
"""A bar without a description before it: those of loading, mapping and sampling have one."""
_COUNTER = re.compile(rb"(?:^|\])\s*(?:\d+%\|[^|]*\|\s*)?(\d+)/(\d+) \[\d+:\d\d[^\]]*")
"""The same where the bar itself was left out or several stand one after the other, as copied logs have them."""
_MOST_ENDS = 16
_MOST_REDRAWS = 1_000_000
_ANNOUNCED = re.compile(rb"(Num Epochs|Total (?:optimization )?steps) = (\d[\d,]*)")
_MOST_LAUNCHES = 10_000
_ROUNDED = 0.0051
"""The trainer prints epochs with two decimals, and newer ones with more."""


@dataclass(slots=True)
class _Redraw:
    """A place where the progress bar made room for a row: its step, its end, and which row came there (-1: none)."""

    step: int
    total: int
    row: int


@dataclass(slots=True)
class _ProgressBar:
    """Follows the trainer's bar through the pieces of a console log.

    To print a row, the trainer wipes the bar, prints, and draws the bar again at the same step. The bar goes to the
    error stream at once, while the rows of the output stream may be held back in a buffer and come many at a time: the
    step at which a row shows up in the file says little, but the order of the redraws is the order of the rows.
    """

    redraws: list[_Redraw] = field(default_factory=list)
    last: tuple[int, int] = (-1, -1)
    _left: dict[int, int] = field(default_factory=dict)
    _wiped: bool = False
    _row: int = -1

    def see(self, piece: bytes) -> bool:
        """Take a piece of a line, as the carriage returns cut it. Returns whether it was of a bar."""
        if len(piece) >= 8 and piece.isspace():
            self._wiped = True
            return True
        match = _BAR.match(piece)
        if match is None or piece.find(b"%|", match.end()) >= 0:
            return b"/" in piece and self._see_counters(piece)
        drawn = int(match[1]), int(match[2])
        if self._wiped and (self._row >= 0 or drawn == self.last) and len(self.redraws) < _MOST_REDRAWS:
            self.redraws.append(_Redraw(*drawn, self._row))
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

    def add_row(self, number: int) -> None:
        """Take a row; where several come before the bar is drawn again, none of them belongs to that place."""
        self._row = number if self._wiped and self._row == -1 else -2

    def redraws_by_launch(self) -> list[list[_Redraw]]:
        """A bar that falls back, or has another end, is that of another launch."""
        found: list[list[_Redraw]] = []
        for redraw in self.redraws:
            if not found or redraw.total != found[-1][-1].total or redraw.step < found[-1][-1].step:
                found.append([])
            found[-1].append(redraw)
        return found


@dataclass(slots=True)
class _Launch:
    """The rows of one start of the trainer, and the steps and epochs it announced (0 where it did not)."""

    first_row: int
    announced_steps: int
    announced_epochs: int
    kinds: list[int] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    counters: list[tuple[int, int]] = field(default_factory=list)
    """The step and the end that the bar before each row showed."""
    latest: dict[int, dict[int, int]] = field(default_factory=dict)
    """For rows that are not of training: where the bar with each end was drawn last."""

    @property
    def trained(self) -> list[int]:
        return [position for position, kind in enumerate(self.kinds) if kind == TRAIN]


class TrainerSteps:
    """Collects what each row says about its position, and then gives the steps.

    Another launch begins where the epoch falls back, and after the row that sums a launch up unless the epoch goes on.
    """

    def __init__(self) -> None:
        self._bar = _ProgressBar()
        self._rows = 0
        self._launches: list[_Launch] = []
        self._announced = (0, 0)
        self._latest: dict[int, int] = {}

    def see(self, piece: bytes) -> None:
        """Take a piece of a line that is not a row: a bar, or what the trainer announces when it begins."""
        if self._bar.see(piece) or b" = " not in piece:
            return
        for name, text in _ANNOUNCED.findall(piece):
            number = int(text.replace(b",", b""))
            self._announced = (0, number) if name == b"Num Epochs" else (number, self._announced[1])

    def add(self, kind: int, epoch: float | None) -> None:
        """Take the next row."""
        last = self._launches[-1] if self._launches else None
        here = epoch if epoch is not None else (last.epochs[-1] if last else 0.0)
        begins = last is None or here < last.epochs[-1] or (last.kinds[-1] == SUMMARY and here <= last.epochs[-1])
        if last is None or (begins and len(self._launches) < _MOST_LAUNCHES):
            last = _Launch(self._rows, *self._announced)
            self._launches.append(last)
        last.kinds.append(kind)
        last.epochs.append(here)
        last.counters.append(self._bar.last)
        if kind != TRAIN:
            latest = self._bar.latest()
            self._latest = self._latest if latest == self._latest else latest  # one object, however often it is kept
            last.latest[len(last.kinds) - 1] = self._latest
        self._bar.add_row(self._rows)
        self._rows += 1

    def steps(self) -> tuple[list[int], str]:
        """The step of each row, and how it was found."""
        how = "no step is logged; "
        if (found := self._by_redraws()) is not None:
            return found, how + "steps are taken from the progress bar"
        if (found := self._of_each(_by_counter)) is not None:
            return found, how + "steps are taken from the progress bar before each row"
        if (found := self._of_each(_by_epochs)) is not None:
            return found, how + "steps are taken from the epochs and the announced number of steps"
        return self._by_count(), how + "rows are numbered from 1" + " in each launch" * (len(self._launches) > 1)

    def _by_redraws(self) -> list[int] | None:
        if len(self._bar.redraws) >= _MOST_REDRAWS:
            return None
        redraws = self._bar.redraws_by_launch()
        if not self._launches or len(redraws) != len(self._launches):
            return None
        steps: list[int] = []
        for launch, own in zip(self._launches, redraws, strict=True):
            if not _belong_together(launch, own):
                return None
            steps += [redraw.step for redraw in own[: len(launch.kinds)]]
        return steps

    def _of_each(self, way: Callable[[_Launch], list[int] | None]) -> list[int] | None:
        """The steps by a way that has to fit every launch."""
        found = [way(launch) for launch in self._launches]
        return None if any(steps is None for steps in found) else [step for steps in found for step in steps or ()]

    def _by_count(self) -> list[int]:
        """Numbers from 1 in each launch; one that goes on in the middle of the one before is numbered from there."""
        steps: list[int] = []
        earlier: list[float] = []
        for launch in self._launches:
            number = bisect_left(earlier, launch.epochs[0]) if earlier and launch.epochs[0] > earlier[0] else 0
            earlier = earlier[:number]
            for kind, epoch in zip(launch.kinds, launch.epochs, strict=True):
                if kind != HELD_OUT or not earlier:
                    earlier.append(epoch)
                steps.append(len(earlier))
        return steps


def _belong_together(launch: _Launch, redraws: list[_Redraw]) -> bool:
    """Whether the k-th redraw is the k-th row's.

    There must be one for each row, more of them only if the launch was killed with rows in its buffer; a row that
    stands at a redraw must be its own, and the epochs must grow as the steps do.
    """
    rows = len(launch.kinds)
    if len(redraws) < rows or (len(redraws) > rows and SUMMARY in launch.kinds):
        return False
    if any(redraw.row >= 0 and redraw.row != launch.first_row + position for position, redraw in enumerate(redraws)):
        return False
    return _grow_together(launch.epochs, [redraw.step for redraw in redraws[:rows]])


def _grow_together(epochs: Sequence[float], steps: Sequence[int]) -> bool:
    """Whether the epochs grow as the steps do."""
    pace = epochs[-1] / max(1, steps[-1]) if steps else 0.0
    return all(abs(epoch - pace * step) <= 0.011 + 0.02 * epoch for epoch, step in zip(epochs, steps, strict=True))


def _by_counter(launch: _Launch) -> list[int] | None:
    """The steps that the bar showed before each row; `None` where it was not there, or did not grow as the epochs did.

    Rows that a buffer held back come several to a counter, so the counter has to grow from row to row.
    """
    rows = launch.trained
    totals = {launch.counters[row][1] for row in rows}
    if len(totals) != 1 or -1 in totals:
        return None
    counted = _not_behind([launch.counters[row][0] for row in rows])
    if any(later <= earlier for earlier, later in pairwise(counted)):
        return None
    if not _grow_together([launch.epochs[row] for row in rows], counted):
        return None
    return _with_others(launch, counted, totals.pop())


def _not_behind(counters: list[int]) -> list[int]:
    """The counters, each one more where they are one behind: there is no row of step 0, and rows come at round steps."""
    apart = math.gcd(*(later - earlier for earlier, later in pairwise(counters)))
    behind = len(counters) > 2 and apart > 1 and all((counter + 1) % apart == 0 for counter in counters)
    return [counter + 1 for counter in counters] if behind or counters[:1] == [0] else counters


def _by_epochs(launch: _Launch) -> list[int] | None:
    """The steps of rows that come every so many; `None` unless only one answer fits.

    All rows that the launch was to have must be there. Fewer steps than a whole epoch may be announced as one, so that
    the epochs of a launch which broke off do not tell its steps.
    """
    epochs = [launch.epochs[row] for row in launch.trained]
    rows, total = len(epochs), launch.announced_steps
    if rows < 3 or not total or not launch.announced_epochs:
        return None
    pace = launch.announced_epochs / total
    every = {total // rows, total // max(1, rows - 1), round(epochs[-1] / pace / rows)}
    every |= {number + 1 for number in every}
    found = {
        tuple(steps)
        for number in every
        if number > 0
        for steps in ([*range(number, total + 1, number)], [1] * (number > 1) + [*range(number, total + 1, number)])
        # within an epoch, the epochs run ahead by up to a step, the last being a short one
        if len(steps) == rows and all(abs(e - pace * step) <= _ROUNDED + pace for e, step in zip(epochs, steps, strict=True))
    }
    return _with_others(launch, list(found.pop()), -1) if len(found) == 1 else None


def _with_others(launch: _Launch, counted: list[int], total: int) -> list[int]:
    """The steps of all rows: an evaluation belongs to the step of the trainer's progress bar, or to the row before it."""
    steps: list[int] = []
    trained = iter(counted)
    for row, kind in enumerate(launch.kinds):
        before = steps[-1] if steps else 0
        steps.append(next(trained) if kind == TRAIN else max(before, launch.latest[row].get(total, before)))
    return steps
