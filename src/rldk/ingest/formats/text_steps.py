"""The steps of rows of free text: what each counts by, and where the program was started again."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Banner", "StepCounter"]


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
    _offset: int = 0
    _last: int = -1
    _epoch: float = -1.0
    _forms: frozenset[int] = frozenset()

    def next(self, step: int | None, total: int | None, epoch: float | None, form: int) -> int:
        """The step of the next row; `form` distinguishes rows that are printed for the same step."""
        epoch = epoch if epoch is not None and math.isfinite(epoch) else None
        if step is not None:
            self._by_step(step, total, epoch)
        elif epoch is not None and epoch.is_integer() and self.by in ("", "epoch"):
            self._by_epoch(int(epoch), form)
        else:
            self.by = "number"
            self.step += 1
        self._epoch = self._epoch if epoch is None else epoch
        return self.step

    def _by_step(self, step: int, total: int | None, epoch: float | None) -> None:
        if epoch is not None and epoch > self._epoch >= 0 and step <= self._last:
            self._offset += max(total or 0, self._last + (step == 0))
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


class Banner:
    """Remembers the first two lines of a file that are not rows, and notices when both come again, one after the other.

    One line would not do: a warning or a heading may be printed at every step.
    """

    def __init__(self) -> None:
        self._first: list[tuple[str, ...]] = []
        self._recent: list[tuple[str, ...]] = []
        self._complete = self._again = self._rows_seen = False

    def see(self, words: tuple[str, ...]) -> None:
        """Take a line that is not a row, by its words."""
        if not any(character.isalpha() for text in words for character in text):
            return
        if not self._complete:
            self._first.append(words)
            self._complete = len(self._first) == 2
            return
        self._recent = [*self._recent[-1:], words]
        if self._recent == self._first:
            self._again = True

    def began_again(self) -> bool:
        """Take a row. Returns whether the program was started again since the last one."""
        again, self._again = self._again and self._rows_seen, False
        self._rows_seen = self._complete = True
        self._recent = []
        return again
