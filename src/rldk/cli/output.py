"""What commands print: JSON for programs; tables, sparklines and progress bars for people."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.core.files import strict
from rldk.core.text import clean

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "print_json", "progress_bar", "sparkline", "unicode_terminal", "while_read"]

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "._-=+*#@"
_LARGE = 8 << 20
_PIPED_WIDTH = 200


def console() -> Console:
    """The terminal: colours where it has them, and none where `NO_COLOR` asks for none.

    What goes into a file or another program is as wide as it needs to be, so that a row stays a line.
    """
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1, whatever the command has found

    piped = not sys.stdout.isatty()
    width = _PIPED_WIDTH if piped and "COLUMNS" not in os.environ else None
    return Terminal(highlight=False, markup=False, emoji=False, soft_wrap=piped, width=width)


@contextmanager
def while_read() -> Iterator[None]:
    """Print inside of it: a reader that has seen enough (`| head`) ends the printing, and the exit status is the command's."""
    try:
        yield
        sys.stdout.flush()  # here, where a reader that has gone is understood, and not at exit
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no complaint about what is left to write


def print_json(value: Any) -> None:
    """One JSON object on stdout; strict and in ASCII, so that every reader takes it: a non-finite number is `null`."""
    sys.stdout.write(json.dumps(strict(value)) + "\n")


def unicode_terminal() -> bool:
    """Whether the output takes more than ASCII."""
    return "utf" in (getattr(sys.stdout, "encoding", None) or "ascii").lower()


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """A series as a row of bars; each bar is the mean of its share, a gap is a space, a non-finite value an `x`."""
    bars = _BARS if unicode_terminal() else _PLAIN_BARS
    if not len(values):
        return ""
    width = min(width, len(values))
    cells = [values[len(values) * i // width : len(values) * (i + 1) // width] for i in range(width)]
    means = [_cell(cell) for cell in cells]
    finite = [mean for mean in means if math.isfinite(mean)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = high - low

    def bar(mean: float) -> str:
        if math.isnan(mean):
            return " "
        if math.isinf(mean):
            return "x"
        place = (mean - low) / span if span > 0 and math.isfinite(span) else 0.0
        return bars[min(int(place * len(bars)), len(bars) - 1)]

    return "".join(map(bar, means))


def _cell(cell: Sequence[float]) -> float:
    if any(math.isinf(value) for value in cell):
        return math.inf
    there = [value for value in cell if not math.isnan(value)]
    return math.fsum(value / len(there) for value in there) if there else math.nan


@contextmanager
def progress_bar(total_bytes: int) -> Iterator[Callable[[Path, int, int], None] | None]:
    """A bar on stderr while files are read; none where the input is small or stderr is no terminal."""
    if total_bytes < _LARGE or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total_bytes)
        finished: dict[Path, int] = {}

        def told(path: Path, done: int, _total: int) -> None:
            finished[path] = done
            progress.update(task, completed=sum(finished.values()), description=clean(path.name, 40))

        yield told
