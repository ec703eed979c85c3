"""How a program shows that it was started anew in the same file: it prints its first lines again."""

from __future__ import annotations

__all__ = ["Banner"]

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
