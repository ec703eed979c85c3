"""Write the files of a report, each whole or not at all, and none outside of the folder that was named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rldk.core.errors import UsageError
from rldk.core.files import file_name, replacing, write_text
from rldk.core.text import writable
from rldk.present.plots.build import panels_of
from rldk.present.plots.svg import png
from rldk.report.case import Case

__all__ = ["write_pictures", "write_report"]


def write_report(path: str | Path, content: str) -> Path:
    """Write a page or a summary."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(
            f"Expected a file to write to, got the folder {target}; name one in it, such as {target / 'report.html'}."
        )
    try:
        return write_text(target, writable(content))  # names of files and keys of logs may hold half a surrogate pair
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}.") from error


def write_pictures(folder: str | Path, cases: Sequence[Case]) -> list[Path]:
    """Every panel as a PNG file: `RUN-kl.png` for each run, and for several runs all of them in one plot as `all-kl.png`."""
    target = Path(folder)
    named = {id(case): file_name(case.judgement.run.run_id) for case in cases}
    if len(set(named.values())) < len(cases):
        named = {id(case): f"{number}-{named[id(case)]}" for number, case in enumerate(cases, 1)}
    pictures = [(f"{named[id(case)]}-{file_name(panel.key)}", panel) for case in cases for panel in case.panels]
    if len(cases) > 1:
        pictures += [(f"all-{file_name(panel.key)}", panel) for panel in panels_of([case.source for case in cases])]
    try:
        target.mkdir(parents=True, exist_ok=True)
        written = []
        for name, panel in pictures:
            written.append(target / f"{name}.png")
            with replacing(written[-1]) as part:
                part.write_bytes(png(panel))
    except OSError as error:
        raise UsageError(f"{target} cannot be written to: {error.strerror or error}.") from error
    return written
