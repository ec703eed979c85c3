"""What an adapter made of a file, to compare readings by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rldk.core.errors import RLDKError
from rldk.ingest.adapter import Adapter
from rldk.runs.table import NUMBER

__all__ = ["ROWS", "Reading", "Writer", "read", "read_whole"]

Writer = Callable[[Path, int], Path]
"""Writes a log of about so many rows into a folder; gives the path that the adapter is to read."""

Cells = set[tuple[int, str, str]]

ROWS = 6


@dataclass(slots=True)
class Reading:
    """What an adapter made of a file; no cells where it refused it, with the reason in `said`."""

    cells: Cells
    said: str
    refused: bool = False

    @property
    def values(self) -> set[tuple[str, str]]:
        """Metrics and values, whatever the step."""
        return {(name, value) for _, name, value in self.cells}


def read(kind: type[Adapter], path: Path) -> Reading:
    """Read a file as rldk would; `RLDKError` is the one error by which an adapter may refuse it."""
    try:
        adapter = kind(path)
        if not adapter.can_handle():
            return Reading(set(), adapter.why, refused=True)
        runs = adapter.runs()
    except RLDKError as error:
        return Reading(set(), str(error), refused=True)
    cells: Cells = set()
    for run in runs:
        steps = run.steps.tolist()
        for name, column in run.columns.items():
            pairs = zip(steps, column.values.tolist(), column.state.tolist(), strict=True)
            cells.update((step, name, repr(value)) for step, value, state in pairs if state == NUMBER)
    return Reading(cells, " ".join([adapter.problems.summary(), *adapter.notes, *(note for run in runs for note in run.notes)]))


def read_whole(kind: type[Adapter], path: Path) -> Reading:
    """Read a sample, which must be readable."""
    whole = read(kind, path)
    assert not whole.refused, f"it refuses the sample: {whole.said}"
    assert whole.cells, "it reads no number from the sample"
    return whole
