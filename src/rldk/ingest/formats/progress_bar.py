"""The progress bar of the Hugging Face trainer, followed through a console log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["MOST_REDRAWS", "ProgressBar", "Redraw"]

_BAR = re.compile(rb"\s*\d+%\|[^|]*\|\s*(\d+)/(\d+) \[")
"""A bar without a description before it: those of loading, mapping and sampling have one."""
_COUNTER = re.compile(rb"(?:^|\])\s*(?:\d+%\|[^|]*\|\s*)?(\d+)/(\d+) \[\d+:\d\d[^\]]*")
"""The same where the bar itself was left out or several stand one after the other, as copied logs have them."""
_MOST_ENDS = 16
MOST_REDRAWS = 1_000_000


@dataclass(slots=True)
class Redraw:
    """A place where the progress bar made room for a row: its step, its end, and which row came there (-1: none)."""

    step: int
    total: int
    row: int


@dataclass(slots=True)
class ProgressBar:
    """Follows the trainer's bar through the pieces of a console log.

    To print a row, the trainer wipes the bar, prints, and draws the bar again at the same step. The bar goes to the
    error stream at once, while the rows of the output stream may be held back in a buffer and come many at a time: the
    step at which a row shows up in the file says little, but the order of the redraws is the order of the rows.
    """

    redraws: list[Redraw] = field(default_factory=list)
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
        if self._wiped and (self._row >= 0 or drawn == self.last) and len(self.redraws) < MOST_REDRAWS:
            self.redraws.append(Redraw(*drawn, self._row))
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

    def redraws_by_launch(self) -> list[list[Redraw]]:
        """A bar that falls back, or has another end, is that of another launch."""
        found: list[list[Redraw]] = []
        for redraw in self.redraws:
            if not found or redraw.total != found[-1][-1].total or redraw.step < found[-1][-1].step:
                found.append([])
            found[-1].append(redraw)
        return found
