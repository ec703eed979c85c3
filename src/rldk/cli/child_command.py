"""A command whose output is passed through and read as it appears, in a terminal of its own where ours is one."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from rldk.cli.child_processes import adopt_orphans, end_processes, reap_orphans, started_by
from rldk.core.errors import UsageError

__all__ = ["Command", "CommandNotStartedError"]

_BLOCK = 1 << 16
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class CommandNotStartedError(UsageError):
    """The command does not exist (status 127) or cannot be run (126), as shells have it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Command:
    """A command that runs, with what it prints passed to our own output and to `on_output(stream, bytes)`.

    It gets a terminal where our output is one, otherwise separate pipes, and its own session, so that all of its processes
    can be found. Signals that we get are passed on to it. Memory is bounded: what our reader does not take makes the command
    wait, as without us.
    """

    def __init__(self, words: Sequence[str], on_output: Callable[[str, bytes], None]) -> None:
        self.process: subprocess.Popen[bytes]
        self._words, self._on_output = words, on_output
        self._out, self._err = sys.stdout.fileno(), sys.stderr.fileno()
        self.terminal = ChildTerminal(self._out) if is_foreground_terminal(self._out) else None
        self._typed = self.terminal is not None and is_foreground_terminal(0)
        self._readers: list[threading.Thread] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start it. While this lasts, signals to us go to the command, and a new size of our terminal to its own."""
        terminal = self.terminal
        handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            number: self._pass_signal for name in _FORWARDED if (number := getattr(signal, name, None)) is not None
        }
        if terminal is not None:
            handlers[signal.SIGWINCH] = lambda *_: terminal.copy_size()
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            if terminal is not None and self._typed:
                terminal.take_keys(0)
            self._start()
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if terminal is not None:
                terminal.restore()

    def _start(self) -> None:
        terminal = self.terminal
        theirs = subprocess.PIPE if terminal is None else terminal.theirs
        adopt_orphans()
        try:
            self.process = subprocess.Popen(
                self._words,
                stdin=theirs if self._typed else None,
                stdout=theirs,
                stderr=theirs if terminal is not None and os.isatty(self._err) else subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                preexec_fn=None if terminal is None else terminal.become_controlling,
            )
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            said = f"{self._words[0]} cannot be run: {error.strerror}."
            raise CommandNotStartedError(said, 127 if missing else 126) from error
        self._readers = [self._pass_on(*stream) for stream in self._streams(self._out, self._err)]
        if self._typed:
            self._pass_keys()

    def _pass_signal(self, number: int, _frame: FrameType | None) -> None:
        process = getattr(self, "process", None)
        with suppress(OSError):
            if process is not None and sys.platform == "win32":
                process.send_signal(number)
            elif process is not None and process.poll() is None:
                os.killpg(process.pid, number)

    def _streams(self, out: int, err: int) -> Iterator[tuple[str, io.FileIO, int]]:
        if self.terminal is not None:
            os.close(self.terminal.theirs)
            yield "terminal", io.FileIO(self.terminal.own, closefd=True), out
        for name, source, target in (("stdout", self.process.stdout, out), ("stderr", self.process.stderr, err)):
            if source is not None:
                assert isinstance(source, io.FileIO)  # as without a buffer
                yield name, source, target

    def _pass_on(self, stream: str, source: io.FileIO, target: int) -> threading.Thread:
        def work() -> None:
            with suppress(OSError):  # a terminal ends with an error; and a reader of ours that has gone ends the stream
                while data := source.read(_BLOCK):
                    self._on_output(stream, data)
                    _write_all(target, data)
            source.close()

        thread = threading.Thread(target=work, name=f"rldk run {stream}", daemon=True)
        thread.start()
        return thread

    def _pass_keys(self) -> None:
        assert self.terminal is not None
        own = self.terminal.own

        def work() -> None:
            with suppress(OSError):
                while data := os.read(0, _BLOCK):
                    _write_all(own, data)

        threading.Thread(target=work, name="rldk run keys", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait up to so long for the end of the command and of its output; whether both have ended."""
        for reader in self._readers:
            if reader.is_alive():
                reader.join(seconds)
                break
        else:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        reap_orphans(self.process.pid)
        return self.has_ended and not any(reader.is_alive() for reader in self._readers)

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended, though processes that it started may still hold its output."""
        return self.process.poll() is not None

    def others(self) -> int:
        """How many processes that it started still run."""
        return sum(one.pid != self.process.pid for one in started_by(self.process.pid))

    def end(self, grace: float) -> bool:
        """End the command and all that it started (SIGTERM, then SIGKILL); whether SIGKILL was needed."""
        return end_processes(self.process, grace)

    @property
    def status(self) -> int:
        """The exit status as shells have it: 128 + N for a command that signal N ended."""
        code = self.process.returncode
        return 128 - code if code < 0 else code


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


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
