"""A terminal for a command that is run: of the size and settings of ours, which passes every key on meanwhile."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

__all__ = ["ChildTerminal", "is_foreground_terminal"]


def is_foreground_terminal(descriptor: int) -> bool:
    """Whether this is a terminal, on a system that has such, and we may use it: a job in the background may not."""
    if sys.platform == "win32" or not os.isatty(descriptor):
        return False
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


class ChildTerminal:
    """A terminal of its own for a command.

    Attributes:
        own: the end that we read and write.
        theirs: the end that the command gets; closed here once it has it.
    """

    def __init__(self, shown_on: int) -> None:
        import termios
        import tty

        self.own, self.theirs = os.openpty()
        self._shown_on = shown_on
        self._keys_from: int | None = None
        self._before: list[int | list[bytes | int]] = []
        settings = termios.tcgetattr(shown_on)
        settings[tty.CC][termios.VSUSP] = os.fpathconf(shown_on, "PC_VDISABLE").to_bytes(1, "little")  # nothing could resume it
        termios.tcsetattr(self.theirs, termios.TCSANOW, settings)
        self.copy_size()

    def copy_size(self) -> None:
        """Take over the size of our terminal, now and when it changes."""
        import fcntl
        import termios

        with suppress(OSError):
            fcntl.ioctl(self.own, termios.TIOCSWINSZ, fcntl.ioctl(self._shown_on, termios.TIOCGWINSZ, b"\0" * 8))

    def become_controlling(self) -> None:
        """In the new process: Ctrl-C and the like reach the command through this terminal."""
        import fcntl
        import termios

        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)

    def take_keys(self, descriptor: int) -> None:
        """Put our terminal into raw mode: it passes keys on, and the terminal of the command handles them."""
        import termios
        import tty

        self._keys_from, self._before = descriptor, termios.tcgetattr(descriptor)
        tty.setraw(descriptor, termios.TCSADRAIN)

    @property
    def is_raw(self) -> bool:
        """Whether our terminal is in raw mode, in which each line needs a carriage return at its end."""
        return self._keys_from is not None

    def restore(self) -> None:
        """Give our terminal its settings back."""
        import termios

        if self._keys_from is not None:
            termios.tcsetattr(self._keys_from, termios.TCSADRAIN, self._before)
            self._keys_from = None
