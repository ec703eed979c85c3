"""What an adapter does with damaged files: never a number that is not there, and what is lost is said."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from rldk.ingest.adapter import Adapter
from rldk.testing.checks.reading import ROWS, Writer, read, read_whole
from rldk.testing.damage import GARBAGE, cuts

__all__ = [
    "check_cut_off_anywhere",
    "check_passes_over_garbage",
    "check_says_that_the_last_line_is_torn",
    "check_takes_compressed_text",
    "check_takes_lines_in_any_order",
]


def check_cut_off_anywhere(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    whole = read_whole(kind, path)
    for file in sorted(inner for inner in folder.rglob("*") if inner.is_file()):
        content = file.read_bytes()
        for end in cuts(content):
            file.write_bytes(content[:end])
            found = read(kind, path).cells - whole.cells
            assert not found, f"cut off after {content[max(0, end - 60) : end]!r}, it reads {sorted(found)[:3]}"
        file.write_bytes(content)


def check_says_that_the_last_line_is_torn(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    whole = read_whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    before = read(kind, path)
    for share in (0.75, 0.9):  # a line of free text of which less is left may not be known for a row
        torn = lines[-1][: int(share * len(lines[-1]))]
        path.write_bytes(b"".join([*lines[:-1], torn]))
        after = read(kind, path)
        assert after.cells <= whole.cells, f"of the last line, {torn[-60:]!r}, it reads {sorted(after.cells - whole.cells)[:3]}"
        assert after.refused or after.said != before.said, f"it does not say that the last line, {torn[-60:]!r}, is cut off"


def check_takes_compressed_text(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    whole = read_whole(kind, path)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed)
    assert read(kind, path).cells == whole.cells, "compressed by gzip, the sample gives something else"
    for end in (len(packed) - 4, len(packed) // 2):
        path.write_bytes(packed[:end])
        cut = read(kind, path)
        assert cut.cells <= whole.cells, "compressed and cut off, it reads what is not there"
        assert cut.said.strip(), "compressed and cut off, it does not say that something is lost"


def check_takes_lines_in_any_order(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    whole = read_whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        path.write_bytes(b"".join(lines))
        found = read(kind, path).values - whole.values
        assert not found, f"with its lines in another order, it reads {sorted(found)[:3]}"


def check_passes_over_garbage(kind: type[Adapter], write: Writer, folder: Path) -> None:
    path = write(folder, ROWS)
    whole = read_whole(kind, path)
    lines = path.read_bytes().splitlines(keepends=True)
    for garbage in GARBAGE:
        for where in (len(lines) // 2, len(lines)):
            path.write_bytes(b"".join([*lines[:where], garbage + b"\n", *lines[where:]]))
            found = read(kind, path)
            more = found.cells - whole.cells
            assert not more, f"with a line {garbage[:40]!r}, it reads {sorted(more)[:3]}"
            lost = whole.cells - found.cells
            assert not lost or found.said.strip(), f"with a line {garbage[:40]!r}, it loses {sorted(lost)[:3]} and says nothing"
