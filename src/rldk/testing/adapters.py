"""What every adapter promises, as checks: it never invents a number, and reports losses. For each of rldk's adapters, and yours.

    def write(folder, rows):
        path = folder / "log.txt"
        path.write_text("".join(f"step {n} reward {n / 10}\\n" for n in range(rows)))
        return path

    for name, check in yield_adapter_checks(MyAdapter, write):
        check()

A check raises `AssertionError` with what it found. They take a second or two together.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rldk.core.errors import RLDKError
from rldk.ingest.adapter import Adapter
from rldk.runs.table import NUMBER
from rldk.testing.checks.trial_runs import name_of, quietly

__all__ = ["Writer", "yield_adapter_checks"]

_MOST_CUTS = 60
_ENDS = 15

_ODD_FILES = {
    "an empty file": b"",
    "blank lines": b"\n\n \n\t\n",
    "zeros": bytes(3000),
    "bytes that are no text": bytes(range(256)) * 20,
    "text in no encoding": b"\xff\xfe\xfd" * 500,
    "prose": b"It was a bright cold day in April, and the clocks were striking thirteen.\n" * 20,
    "a word without end": b"x" * 100_000,
    "brackets without end": b"[" * 50_000,
    "braces without end": b'{"a":' * 20_000,
    "commas": b",,,\n" * 200,
    "a gzip header and no more": b"\x1f\x8b\x08\x00",
    "a SQLite header and no more": b"SQLite format 3\x00",
    "an empty JSON object": b"{}\n",
    "an empty JSON list": b"[]\n",
    "a JSON number": b"7\n",
    "null": b"null\n",
}
"""Files that are not logs, by description."""

_GARBAGE = (
    b"",
    b"Traceback (most recent call last):",
    b"\x00\xff\xfe\x1b[31m\x08",
    b"{",
    b"}",
    b'{"torn": ',
    b"{'torn': ",
    b"]",
    b"<html>",
    "─".encode() * 200,
    b"x" * 5000,
    b"nothing to see here, move along",
)
"""Lines without content that occur in logs."""


def _cuts(content: bytes) -> list[int]:
    """Where to cut a file off: everywhere if it is short, else at some sixty places and everywhere near its ends."""
    size = len(content)
    near = {*range(min(_ENDS, size)), *range(max(0, size - _ENDS), size)}
    return sorted(near | set(range(0, size, max(1, size // _MOST_CUTS))))


Writer = Callable[[Path, int], Path]
"""Writes a log of about the given number of rows into a folder; returns the path that the adapter is to read."""

_Cells = set[tuple[int, str, str]]

_ROWS = 6


@dataclass(slots=True)
class _Reading:
    """What an adapter read from a file; if it refused it, no cells, and the reason in `said`."""

    cells: _Cells
    said: str
    refused: bool = False

    @property
    def values(self) -> set[tuple[str, str]]:
        """Metrics and values, whatever the step."""
        return {(name, value) for _, name, value in self.cells}


def _read(kind: type[Adapter], path: Path) -> _Reading:
    """Read a file as rldk does; the only error an adapter may raise is `RLDKError`."""
    try:
        adapter = kind(path)
        if not adapter.can_handle():
            return _Reading(set(), adapter.why, refused=True)
        runs = adapter.runs()
    except RLDKError as error:
        return _Reading(set(), str(error), refused=True)
    cells: _Cells = set()
    for run in runs:
        steps = run.steps.tolist()
        for name, column in run.columns.items():
            pairs = zip(steps, column.values.tolist(), column.state.tolist(), strict=True)
            cells.update((step, name, repr(value)) for step, value, state in pairs if state == NUMBER)
    return _Reading(cells, " ".join([adapter.problems.summary(), *adapter.notes, *(note for run in runs for note in run.notes)]))


def _read_whole(kind: type[Adapter], path: Path) -> _Reading:
    """Read a sample, which must be readable."""
    whole = _read(kind, path)
    assert not whole.refused, f"it refuses the sample: {whole.said}"
    assert whole.cells, "it reads no number from the sample"
    return whole


_MANY = 1000
_MEMORY = 6
_ROOM = 6 << 20


def check_reads_its_sample(kind: type[Adapter], write: Writer, folder: Path) -> None:
    assert kind.name.isidentifier() and kind.name.islower(), f"`name` {kind.name!r} is not a lower-case name"
    assert kind.title.strip(), "`title` is empty: say what it reads"
    path = write(folder, _ROWS)
    adapter = kind(path)
    assert adapter.can_handle() is True, f"it refuses the sample: {adapter.why}"
    assert adapter.why, "`why` does not state why it can handle the sample"
    _read_whole(kind, path)
    assert _read(kind, path) == _read(kind, path), "read twice, the sample gives two results"
    assert not adapter.problems.summary(), f"the sample is not clean: {adapter.problems.summary()}"


def check_leaves_the_file_as_it_is(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    before = _snapshot(folder)
    _read_whole(kind, path)
    assert _snapshot(folder) == before, "reading changed the file, or left others beside it"


def _snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def check_refuses_what_is_no_log(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = folder / "odd"
    for word, content in _ODD_FILES.items():
        path.write_bytes(content)
        adapter = kind(path)
        assert adapter.can_handle() is False, f"it accepts {word} as a log: {adapter.why}"
        assert adapter.why, f"`why` does not state why it refuses {word}"
        _read(kind, path)
    (folder / "empty").mkdir()
    assert kind(folder / "empty").can_handle() is False, "it accepts an empty folder as a log"


def check_leaves_to_others(kind: type[Adapter], write: Writer, folder: Path) -> None:
    adapter = kind(write(folder, _ROWS))
    assert adapter.can_handle() is False, f"it accepts another adapter's log: {adapter.why}"


def check_takes_either_line_ending(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _read_whole(kind, path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert _read(kind, path).cells == whole.cells, "with lines that end in CR LF it reads something else"


def check_memory_is_bounded(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _MANY)
    with path.open("ab") as file:
        file.write(b"x" * (4 << 20))  # a line without end
    size = path.stat().st_size
    tracemalloc.start()
    try:
        _read(kind, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= _MEMORY * size + _ROOM, f"it takes {peak >> 20} MiB for a file of {size >> 20} MiB"


def check_cut_off_anywhere(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _read_whole(kind, path)
    for file in sorted(inner for inner in folder.rglob("*") if inner.is_file()):
        content = file.read_bytes()
        for end in _cuts(content):
            file.write_bytes(content[:end])
            found = _read(kind, path).cells - whole.cells
            assert not found, f"cut off after {content[max(0, end - 60) : end]!r}, it reads {sorted(found)[:3]}"
        file.write_bytes(content)


def check_says_that_the_last_line_is_torn(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _read_whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    before = _read(kind, path)
    for share in (0.75, 0.9):  # a free-text line with less than that may not be recognised as a row
        torn = lines[-1][: int(share * len(lines[-1]))]
        path.write_bytes(b"".join([*lines[:-1], torn]))
        after = _read(kind, path)
        assert after.cells <= whole.cells, f"of the last line, {torn[-60:]!r}, it reads {sorted(after.cells - whole.cells)[:3]}"
        assert after.refused or after.said != before.said, f"it does not say that the last line, {torn[-60:]!r}, is cut off"


def check_takes_compressed_text(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _read_whole(kind, path)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed)
    assert _read(kind, path).cells == whole.cells, "compressed by gzip, the sample gives something else"
    for end in (len(packed) - 4, len(packed) // 2):
        path.write_bytes(packed[:end])
        cut = _read(kind, path)
        assert cut.cells <= whole.cells, "compressed and cut off, it reads what is not there"
        assert cut.said.strip(), "compressed and cut off, it does not say that something is lost"


def check_takes_lines_in_any_order(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _read_whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        path.write_bytes(b"".join(lines))
        found = _read(kind, path).values - whole.values
        assert not found, f"with its lines in another order, it reads {sorted(found)[:3]}"


def check_passes_over_garbage(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _read_whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for garbage in _GARBAGE:
        for where in (len(lines) // 2, len(lines)):
            path.write_bytes(b"".join([*lines[:where], garbage + b"\n", *lines[where:]]))
            found = _read(kind, path)
            more = found.cells - whole.cells
            assert not more, f"with a line {garbage[:40]!r}, it reads {sorted(more)[:3]}"
            lost = whole.cells - found.cells
            assert not lost or found.said.strip(), f"with a line {garbage[:40]!r}, it loses {sorted(lost)[:3]} and says nothing"


_CHECKS = (
    check_reads_its_sample,
    check_leaves_the_file_as_it_is,
    check_refuses_what_is_no_log,
    check_cut_off_anywhere,
)

_TEXT_CHECKS = (
    check_says_that_the_last_line_is_torn,
    check_takes_either_line_ending,
    check_takes_compressed_text,
    check_takes_lines_in_any_order,
    check_passes_over_garbage,
    check_memory_is_bounded,
)


def yield_adapter_checks(
    kind: type[Adapter], write: Writer, *, others: Iterable[Writer] = (), text: bool = True
) -> Iterator[tuple[str, Callable[[], None]]]:
    """All checks for an adapter, by name.

    Args:
        kind: the adapter's class.
        write: writes a sample of what it reads.
        others: functions that write logs of other adapters, which it must refuse.
        text: whether it reads a text file; some kinds of damage do not exist for binary files and folders.
    """
    for check in (*_CHECKS, *(_TEXT_CHECKS if text else ())):
        yield name_of(check), partial(_in_a_folder, check, kind, write)
    for number, other in enumerate(others):
        name = getattr(other, "__name__", str(number))
        yield f"leaves_to_others-{name}", partial(_in_a_folder, check_leaves_to_others, kind, other)


def _in_a_folder(check: Callable[[type[Adapter], Writer, Path], None], kind: type[Adapter], write: Writer) -> None:
    """Run a check in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        quietly(check, kind, write, Path(folder))
