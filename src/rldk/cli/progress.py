"""Progress on stderr, where that is a terminal: bytes read or copied, what is done, and how many runs have which verdict."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rldk.core.text import clean

if TYPE_CHECKING:
    from rich.progress import Progress

    from rldk.judge.result import Result

__all__ = ["copy_bar", "count_bar", "judging_bar", "progress_bar"]

_LARGE = 8 << 20  # bytes from which reading alone is worth a bar
_WORTH = 2 << 20  # bytes: about half a second of reading and judging
_MOST_LINES = 50


def _bar_of_bytes() -> AbstractContextManager[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)


@contextmanager
def progress_bar(total_bytes: int) -> Iterator[Callable[[Path, int, int], None] | None]:
    """A bar while files are read; none where the input is small."""
    if total_bytes < _LARGE or not sys.stderr.isatty():
        yield None
        return
    with _bar_of_bytes() as progress:
        task = progress.add_task("reading", total=total_bytes)
        finished: dict[Path, int] = {}

        def on_progress(path: Path, done: int, _total: int) -> None:
            progress.update(task, advance=done - finished.get(path, 0), description=clean(path.name, 40))
            finished[path] = done

        yield on_progress


@contextmanager
def copy_bar() -> Iterator[Callable[[int, int], None] | None]:
    """A bar while files are copied from elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    with _bar_of_bytes() as progress:
        task = progress.add_task("copying", total=None, visible=False)
        yield lambda done, total: progress.update(task, completed=done, total=total, visible=True)


@contextmanager
def count_bar() -> Iterator[Callable[[str], None]]:
    """A count of the logs that have been judged, with the name of the last."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("judging", total=None)
        yield lambda name: progress.update(task, advance=1, description=f"judging {clean(name, 40)}")


class JudgingBar:
    """Shows the bytes that have been read, running counts of the verdicts, and each critical run as it is found."""

    def __init__(self, progress: Progress, total_bytes: int) -> None:
        self._progress = progress
        self._task = progress.add_task("judging", total=total_bytes)
        self._read: dict[Path, int] = {}
        self._verdicts: Counter[str] = Counter()

    def read(self, path: Path, done: int) -> None:
        """So many bytes of a file have been read."""
        self._progress.update(self._task, advance=done - self._read.get(path, 0))
        self._read[path] = done

    def judged(self, result: Result) -> None:
        """A run has been judged."""
        from rich.text import Text

        from rldk.present.incidents import cause_line
        from rldk.present.verdicts import STYLES, counts_in_words

        self._verdicts[result.verdict] += 1
        self._progress.update(self._task, description=counts_in_words(self._verdicts))
        if result.verdict == "critical" and self._verdicts["critical"] <= _MOST_LINES:
            said = cause_line(result.worst, result.reason)
            name = clean(result.run.run_id, 60)
            self._progress.console.print(Text.assemble(("critical", STYLES["critical"]), f"  {name}: {clean(said, 120)}"))


@contextmanager
def judging_bar(total_bytes: int) -> Iterator[JudgingBar | None]:
    """The bar of a judgement; none where there is little to do."""
    if total_bytes < _WORTH or not sys.stderr.isatty():
        yield None
        return
    with _bar_of_bytes() as progress:
        yield JudgingBar(progress, total_bytes)
