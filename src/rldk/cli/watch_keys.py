"""Single keys from a terminal, while a screen is shown, and the terminal left as it was."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["Keys", "listen"]


class Keys:
    """Waits for a moment, and says whether a key came; where there is no terminal it only waits."""

    def __init__(self, file: int | None) -> None:
        self._file = file

    def wait(self, seconds: float) -> str:
        """The key that came within so many seconds; empty where none did."""
        if self._file is None:
            time.sleep(seconds)
            return ""
        import os
        import select

        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return ""
        given = os.read(self._file, 64)
        if not given:  # the terminal has gone
            self._file = None
            return "q"
        return given.decode(errors="replace")


@contextmanager
def listen() -> Iterator[Keys]:
    """Read keys one by one and without echo, if there is a terminal to read from."""
    try:
        import termios
        import tty

        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
    except (ImportError, OSError, ValueError, AttributeError, termios.error):
        yield Keys(None)
        return
    try:
        tty.setcbreak(file)
        yield Keys(file)
    finally:
        with suppress(termios.error):
            termios.tcsetattr(file, termios.TCSADRAIN, before)
