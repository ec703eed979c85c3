"""What a terminal shows while many runs are judged: a bar, how many have which verdict, and each critical run as it is found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rldk.core.text import clean

if TYPE_CHECKING:
    from rldk.judge.result import Result

__all__ = ["Judging", "judging_bar"]

_WORTH = 2 << 20  # bytes: about half a second of reading and judging
_MOST_LINES = 50


class Judging(Protocol):
    """What is told as the work goes on."""

    def read(self, path: Path, done: int) -> None:
        """So many bytes of a file have been read."""

    def judged(self, result: Result) -> None:
        """A run has been judged."""


@contextmanager
def judging_bar(total_bytes: int) -> Iterator[Judging | None]:
    """A bar on stderr with running counts; none where there is little to do or stderr is not a terminal."""
    if total_bytes < _WORTH or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    from rldk.present.verdicts import STYLES, VERDICTS, verdict_words

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as progress:
        task = progress.add_task("judging", total=total_bytes)
        finished: dict[Path, int] = {}
        verdicts: Counter[str] = Counter()

        class Bar:
            def read(self, path: Path, done: int) -> None:
                progress.update(task, advance=done - finished.get(path, 0))
                finished[path] = done

            def judged(self, result: Result) -> None:
                verdicts[result.verdict] += 1
                counts = " · ".join(f"{verdicts[name]:,} {verdict_words(name)}" for name in VERDICTS if verdicts[name])
                progress.update(task, description=counts)
                if result.verdict == "critical" and verdicts["critical"] <= _MOST_LINES:
                    said = f"{result.worst.title} (step {result.worst.step})" if result.worst else result.reason
                    name = clean(result.run.run_id, 60)
                    progress.console.print(Text.assemble(("critical", STYLES["critical"]), f"  {name}: {clean(said, 120)}"))

        yield Bar()
