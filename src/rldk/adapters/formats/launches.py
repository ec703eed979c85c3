"""Rows that say no step: the launch of the trainer they belong to, and the step of each, by the bar or by counting."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from rldk.adapters.formats.bars import Bars, Mark

__all__ = ["HELD_OUT", "SUMMARY", "TRAIN", "Launches"]

TRAIN, HELD_OUT, SUMMARY = 0, 1, 2


@dataclass(slots=True)
class _Launch:
    kinds: list[int] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    first_row: int = 0


@dataclass(slots=True)
class Launches:
    """Collects what each row tells of its place, and then says the steps.

    Another launch begins where the epoch falls back, and after the row that sums a launch up unless the epoch goes on.
    """

    bars: Bars = field(default_factory=Bars)
    rows: int = 0
    _found: list[_Launch] = field(default_factory=list)

    def add(self, kind: int, epoch: float | None) -> None:
        """Take the next row."""
        last = self._found[-1] if self._found else None
        here = epoch if epoch is not None else (last.epochs[-1] if last else 0.0)
        if last is None or here < last.epochs[-1] or (last.kinds[-1] == SUMMARY and here <= last.epochs[-1]):
            last = _Launch(first_row=self.rows)
            self._found.append(last)
        last.kinds.append(kind)
        last.epochs.append(here)
        self.bars.row(self.rows)
        self.rows += 1

    def steps(self) -> tuple[list[int], str]:
        """The step of each row, and how it was found."""
        by_bar = self._by_bar()
        if by_bar is not None:
            return by_bar, "the rows say no step: each has the one its progress bar stood at"
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
    pace = launch.epochs[-1] / max(1, marks[rows - 1].step)
    return all(
        abs(epoch - pace * mark.step) <= 0.011 + 0.02 * epoch for epoch, mark in zip(launch.epochs, marks, strict=False)
    )
