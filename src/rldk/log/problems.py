"""The lines that a reader had to skip, counted and located."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

__all__ = ["LineProblems", "TooManyProblems"]

_SHOWN = 3


class TooManyProblems(Exception):
    """So many lines could not be used that reading on is not worth the time."""


@dataclass(slots=True)
class LineProblems:
    """The lines of one file that could not be used.

    All are counted in `total`; the first `limit` are kept in `skipped` with their line numbers (from 1) and reasons, so
    that a file of garbage costs no memory. `damage` says what is wrong with the file as a whole: compressed data that
    ends too early, a disk that cannot be read. `unterminated` is the number of a last line without its newline, and
    `torn` is true where that line could not be used either: a writer died in the middle of it, or is still writing it.

    With `most`, one line more than so many raises `TooManyProblems`. A reader of a console keeps the number of the last line that
    was a row in `last_row`, from 0 on; of a file in which no row comes for very long, the rest is not read.
    """

    limit: int = 100
    skipped: list[tuple[int, str]] = field(default_factory=list)
    total: int = 0
    damage: str | None = None
    unterminated: int | None = None
    torn: bool = False
    most: int | None = None
    last_row: int | None = None

    def add(self, line: int, reason: str) -> None:
        """Record a skipped line and the reason."""
        if line == self.unterminated:
            self.torn = True
            reason = f"torn: the last line has no newline ({reason})"
        self.total += 1
        if len(self.skipped) < self.limit:
            insort(self.skipped, (line, reason))  # a splitter is a block ahead of its consumer
        if self.most is not None and self.total > self.most:
            raise TooManyProblems

    def summary(self) -> str:
        """One sentence for people, naming the first few lines; empty where there is nothing to say."""
        parts = [self.damage] if self.damage else []
        if self.total:
            first = "; ".join(f"line {line}: {reason}" for line, reason in self.skipped[:_SHOWN])
            more = f"; and {self.total - _SHOWN} more" if self.total > _SHOWN else ""
            parts.append(f"{self.total} {'line' if self.total == 1 else 'lines'} skipped ({first}{more})")
        return ". ".join(parts)
