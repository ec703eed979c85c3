"""What commands print: JSON for programs; tables and sparklines for people."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.core.files import strict
from rldk.core.text import clean, counted, short_number
from rldk.storage import places

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rldk.judge.results import Results
    from rldk.runs.run import Run

__all__ = [
    "console", "curves_table", "print_json", "print_json_line", "print_results_json", "show_not_judged", "some_of", "sparkline",
    "table", "unicode_terminal", "verdict_text", "while_read",
]  # fmt: skip

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "._-=+*#@"
_MOST_CURVES = 12
_PIPED_WIDTH = 200


def console() -> Console:
    """The terminal, in colour where it has colours and `NO_COLOR` is not set.

    Output into a file or another program is as wide as it needs to be, so that each row stays one line.
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
    """Print inside of this: a reader that closes the pipe (`| head`) ends the printing, and not the command."""
    try:
        yield
        sys.stdout.flush()  # here, where a closed pipe is handled, and not at exit
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no complaint about what is left to write


def print_json(value: Any) -> None:
    """One JSON object on stdout, strict and in ASCII: a non-finite number is `null`."""
    sys.stdout.write(json.dumps(strict(value)) + "\n")


def print_results_json(judged: Results) -> None:
    """The object of `rldk scan --json`, written run by run: the text of many runs would fill the memory."""
    sys.stdout.write('{"runs": [')
    for number, result in enumerate(judged):
        sys.stdout.write(f"{', ' if number else ''}{json.dumps(strict(result.to_dict()))}")
    sys.stdout.write(f'], "passed_over": {json.dumps(strict(judged.not_judged()))}}}\n')


def print_json_line(value: Any) -> None:
    """One JSON object on a line of its own, which a reader gets at once."""
    print_json(value)
    sys.stdout.flush()


def table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], right: Collection[str] = (), unwrapped: Collection[str] = ()
) -> Table:
    """A plain table. The columns named in `right` are aligned to the right; those in `unwrapped` stay on one line."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    for name in headings:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold", no_wrap=name in unwrapped)
    for row in rows:
        made.add_row(*row)
    return made


def verdict_text(verdict: str) -> Text:
    """A verdict in its colour."""
    from rich.text import Text

    from rldk.present.verdicts import STYLES

    return Text(verdict, style=STYLES[verdict])


def some_of(parts: Sequence[str], most: int) -> str:
    """The first few of some parts, and how many more there are: `a, b and 3 more`."""
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def show_not_judged(passed_over: Sequence[tuple[Path, str]], most: int | None = None) -> None:
    """List the files that were not judged, with the reason for each."""
    if not passed_over:
        return
    out = console()
    out.print()
    shown = passed_over[:most]
    for path, reason in shown:
        out.print(f"· not judged: {clean(places.shown(path))}: {clean(places.shown_in(reason))}", style="dim")
    if len(shown) < len(passed_over):
        out.print(f"· and {counted(len(passed_over) - len(shown), 'more file')} not judged (--json lists them)", style="dim")


def unicode_terminal() -> bool:
    """Whether the output can show more than ASCII."""
    return "utf" in (getattr(sys.stdout, "encoding", None) or "ascii").lower()


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """A series as a row of bars: each bar is the mean of its share, a gap is a space, a non-finite value an `x`."""
    bars = _BARS if unicode_terminal() else _PLAIN_BARS
    if not len(values):
        return ""
    width = min(width, len(values))
    cells = [values[len(values) * i // width : len(values) * (i + 1) // width] for i in range(width)]
    means = [_mean(cell) for cell in cells]
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


def _mean(cell: Sequence[float]) -> float:
    if any(math.isinf(value) for value in cell):
        return math.inf
    there = [value for value in cell if not math.isnan(value)]
    return math.fsum(value / len(there) for value in there) if there else math.nan


def curves_table(run: Run, width: int, marks: Mapping[int, int] | None = None) -> Table | None:
    """The main metrics of a run as sparklines; `None` where it has none.

    `marks` are positions of events with their steps: each gets a `^` below the curves, and the first its step.
    """
    from rich.table import Table

    from rldk.present.plots.standard import MAIN_METRICS

    names = [name for name in MAIN_METRICS if name in run.columns][:_MOST_CURVES]
    if not names or len(run) < 2:
        return None
    made = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        made.add_column(no_wrap=True)
    cells = max(8, min(48, len(run), width - 44))
    for name in names:
        values = run.columns[name].values.tolist()
        there = [value for value in values if value == value] or [math.nan]
        made.add_row(name, sparkline(values, cells), f"{short_number(there[0])} → {short_number(there[-1])}")
    if marks:
        line = ["·" if unicode_terminal() else "."] * cells
        for index in marks:
            line[min(index * cells // len(run), cells - 1)] = "^"
        made.add_row("", "".join(line), f"step {next(iter(marks.values()))}")
    return made
