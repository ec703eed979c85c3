"""What an adapter does with files that are whole: its own, another's, none at all, and very large ones."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

from rldk.ingest.adapter import Adapter
from rldk.testing.checks.reading import ROWS, Writer, read, read_whole
from rldk.testing.damage import ODD_FILES

__all__ = [
    "check_leaves_the_file_as_it_is",
    "check_leaves_to_others",
    "check_memory_is_bounded",
    "check_reads_its_sample",
    "check_refuses_what_is_no_log",
    "check_takes_either_line_ending",
]

_MANY = 3000
_MEMORY = 6
_ROOM = 24 << 20


def check_reads_its_sample(kind: type[Adapter], write: Writer, folder: Path) -> None:
    assert kind.name.isidentifier() and kind.name.islower(), f"`name` {kind.name!r} is not a lower-case name"
    assert kind.title.strip(), "`title` is empty: say what it reads"
    path = write(folder, ROWS)
    adapter = kind(path)
    assert adapter.can_handle() is True, f"it refuses the sample: {adapter.why}"
    assert adapter.why, "`why` says nothing of the reason for which it can handle the sample"
    read_whole(kind, path)
    assert read(kind, path) == read(kind, path), "read twice, the sample gives two results"
    assert not adapter.problems.summary(), f"the sample is not clean: {adapter.problems.summary()}"


def check_leaves_the_file_as_it_is(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    before = _snapshot(folder)
    read_whole(kind, path)
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
    adapter = kind(write(folder, ROWS))
    assert adapter.can_handle() is False, f"it takes another's log for its own: {adapter.why}"


def check_takes_either_line_ending(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    whole = read_whole(kind, path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read(kind, path).cells == whole.cells, "with lines that end in CR LF it reads something else"


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
