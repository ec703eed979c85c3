"""What every adapter promises, as checks that can be run over one: over each of rldk's, and over yours.

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
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rldk.adapters.base import Adapter
from rldk.core.errors import RLDKError
from rldk.runs.table import NUMBER
from rldk.testing.damage import GARBAGE, ODD_FILES, cuts

__all__ = ["Writer", "yield_adapter_checks"]

Writer = Callable[[Path, int], Path]
"""Writes a log of about so many rows into a folder; gives the path that the adapter is to read."""

Cells = set[tuple[int, str, str]]

_ROWS = 6
_MANY = 3000
_MEMORY = 6
_ROOM = 24 << 20


def yield_adapter_checks(
    kind: type[Adapter], write: Writer, *, others: Iterable[Writer] = (), text: bool = True
) -> Iterator[tuple[str, Callable[[], None]]]:
    """All checks for an adapter, by name.

    Args:
        kind: the adapter's class.
        write: writes a sample of what it reads.
        others: write what it must leave to other adapters.
        text: whether it reads a file of text; those of binary files and folders have fewer ways to be damaged.
    """
    for check in (*_CHECKS, *(_TEXT_CHECKS if text else ())):
        yield _name_of(check), partial(_in_a_folder, check, kind, write)
    for number, other in enumerate(others):
        name = getattr(other, "__name__", str(number))
        yield f"leaves_to_others-{name}", partial(_in_a_folder, check_leaves_to_others, kind, other)


def _name_of(check: Callable[..., None]) -> str:
    return check.__name__.removeprefix("check_")


def _in_a_folder(check: Callable[[type[Adapter], Writer, Path], None], kind: type[Adapter], write: Writer) -> None:
    """Run a check in a folder of its own; a warning fails it, and so does an error that is not rldk's."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(kind, write, Path(folder))
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{_name_of(check)}: {type(error).__name__}: {error}") from error


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


def _whole(kind: type[Adapter], path: Path) -> Reading:
    whole = read(kind, path)
    assert not whole.refused, f"it refuses the sample: {whole.said}"
    assert whole.cells, "it reads no number from the sample"
    return whole


def check_reads_its_sample(kind: type[Adapter], write: Writer, folder: Path) -> None:
    assert kind.name.isidentifier() and kind.title.strip(), "`name` must be a lower-case name, and `title` say what it reads"
    path = write(folder, _ROWS)
    adapter = kind(path)
    assert adapter.can_handle() is True, f"it refuses the sample: {adapter.why}"
    assert adapter.why, "`why` says nothing of the reason for which it can handle the sample"
    _whole(kind, path)
    assert read(kind, path) == read(kind, path), "read twice, the sample gives two results"
    assert not adapter.problems.summary(), f"the sample is not clean: {adapter.problems.summary()}"


def check_leaves_the_file_as_it_is(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    before = _snapshot(folder)
    _whole(kind, path)
    assert _snapshot(folder) == before, "reading changed the file, or left others beside it"


def _snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def check_refuses_what_is_no_log(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = folder / "odd"
    for word, content in ODD_FILES.items():
        path.write_bytes(content)
        adapter = kind(path)
        assert adapter.can_handle() is False, f"it takes {word} for a log: {adapter.why}"
        assert adapter.why, f"`why` says nothing of the reason for which it refuses {word}"
        read(kind, path)
    (folder / "empty").mkdir()
    assert kind(folder / "empty").can_handle() is False, "it takes an empty folder for a log"


def check_leaves_to_others(kind: type[Adapter], write: Writer, folder: Path) -> None:
    adapter = kind(write(folder, _ROWS))
    assert adapter.can_handle() is False, f"it takes another's log for its own: {adapter.why}"


def check_cut_off_anywhere(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _whole(kind, path)
    for file in sorted(inner for inner in folder.rglob("*") if inner.is_file()):
        content = file.read_bytes()
        for end in cuts(content):
            file.write_bytes(content[:end])
            found = read(kind, path).cells - whole.cells
            assert not found, f"cut off after {content[max(0, end - 60) : end]!r}, it reads {sorted(found)[:3]}"
        file.write_bytes(content)


def check_says_that_the_last_line_is_torn(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    before = read(kind, path)
    for share in (0.75, 0.9):  # a line of free text of which less is left may not be known for a row
        torn = lines[-1][: int(share * len(lines[-1]))]
        path.write_bytes(b"".join([*lines[:-1], torn]))
        after = read(kind, path)
        assert after.cells <= whole.cells, f"of the last line, {torn[-60:]!r}, it reads {sorted(after.cells - whole.cells)[:3]}"
        assert after.refused or after.said != before.said, f"it does not say that the last line, {torn[-60:]!r}, is cut off"


def check_takes_either_line_ending(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _whole(kind, path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read(kind, path).cells == whole.cells, "with lines that end in CR LF it reads something else"


def check_takes_compressed_text(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _whole(kind, path)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed)
    assert read(kind, path).cells == whole.cells, "compressed by gzip, the sample gives something else"
    for end in (len(packed) - 4, len(packed) // 2):
        path.write_bytes(packed[:end])
        cut = read(kind, path)
        assert cut.cells <= whole.cells, "compressed and cut off, it reads what is not there"
        assert cut.said.strip(), "compressed and cut off, it does not say that something is lost"


def check_takes_lines_in_any_order(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        path.write_bytes(b"".join(lines))
        found = read(kind, path).values - whole.values
        assert not found, f"with its lines in another order, it reads {sorted(found)[:3]}"


def check_passes_over_garbage(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _ROWS)
    whole = _whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for garbage in GARBAGE:
        for where in (len(lines) // 2, len(lines)):
            path.write_bytes(b"".join([*lines[:where], garbage + b"\n", *lines[where:]]))
            found = read(kind, path)
            more = found.cells - whole.cells
            assert not more, f"with a line {garbage[:40]!r}, it reads {sorted(more)[:3]}"
            lost = whole.cells - found.cells
            assert not lost or found.said.strip(), f"with a line {garbage[:40]!r}, it loses {sorted(lost)[:3]} and says nothing"


def check_memory_is_bounded(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, _MANY)
    with path.open("ab") as file:
        file.write(b"x" * (4 << 20))  # a line without end
    size = path.stat().st_size
    tracemalloc.start()
    try:
        read(kind, path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= _MEMORY * size + _ROOM, f"it takes {peak >> 20} MiB for a file of {size >> 20} MiB"


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
