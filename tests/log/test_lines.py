from __future__ import annotations

import os
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import ReadError
from rldk.log import LineProblems, iter_lines
from rldk.log.lines import LineSplitter


def test_numbers_and_lines(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"\xef\xbb\xbfa\r\n\n  \t\nb\n\0\0c\0\n\0\0\n\xef\xbb\xbfd")
    problems = LineProblems()
    found = list(iter_lines(path, problems=problems))
    assert found == [(1, b"a"), (4, b"b"), (5, b"c"), (7, b"\xef\xbb\xbfd")]
    assert [line for line, _ in problems.skipped] == [6]
    assert problems.unterminated == 7 and not problems.torn


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"  "])
def test_nothing_in_it(tmp_path, content):
    path = tmp_path / "log"
    path.write_bytes(content)
    problems = LineProblems()
    assert list(iter_lines(path, problems=problems)) == []
    assert problems.total == 0


def plainly(content: bytes, limit: int) -> tuple[list[tuple[int, bytes]], list[int]]:
    """The same, by the plainest way there is."""
    lines, bad = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        if len(line) > limit:
            bad.append(number)
            continue
        text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if text.replace(b"\0", b"").strip():
            lines.append((number, text.removesuffix(b"\r").strip(b"\0")))
        elif b"\0" in text:
            bad.append(number)
    return lines, bad


content = st.lists(st.sampled_from([b"\n", b"\r\n", b"\0", b" ", b"ab", b"\xef\xbb\xbf", b"xyz" * 7])).map(b"".join)


@settings(deadline=None)
@given(content, st.lists(st.integers(0, 60)), st.sampled_from([5, 20, 1000]))
def test_any_content_in_any_blocks(content, cuts, limit):
    problems = LineProblems()
    splitter = LineSplitter(limit, problems)
    borders = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    found = [pair for a, b in pairwise(borders) for pair in splitter.feed(content[a:b])]
    found += splitter.finish()
    lines, bad = plainly(content, limit)
    assert found == lines
    assert [line for line, _ in problems.skipped] == bad
    assert problems.total == len(bad)


@pytest.mark.parametrize("cut", [0, 5, 13, 24])
def test_a_line_as_long_as_the_limit_is_kept(cut):
    content, problems = b"a" * 10 + b"\n" + b"b" * 10 + b"\n" + b"c" * 10, LineProblems()
    splitter = LineSplitter(10, problems)
    found = splitter.feed(content[:cut]) + splitter.feed(content[cut:]) + splitter.finish()
    assert found == [(1, b"a" * 10), (2, b"b" * 10), (3, b"c" * 10)] and problems.total == 0


def test_a_line_that_is_too_long_is_located(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"a\n" + b"x" * 3_000_000 + b"\nb\n" + b"y" * 11 + b"\n" + b"z" * 11)
    problems = LineProblems()
    assert list(iter_lines(path, 10, problems=problems)) == [(1, b"a"), (3, b"b")]
    assert problems.skipped == [
        (2, "longer than 10 bytes"),
        (4, "longer than 10 bytes"),
        (5, "torn: the last line has no newline (longer than 10 bytes)"),
    ]


def test_progress_is_told(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"0123456\n" * 400_000)
    said: list[tuple[int, int]] = []
    count = sum(1 for _ in iter_lines(path, progress=lambda done, total: said.append((done, total))))
    assert count == 400_000
    assert said[-1] == (3_200_000, 3_200_000)
    assert [done for done, _ in said] == sorted({done for done, _ in said}) and len(said) == 4


def test_a_file_that_cannot_be_opened_is_refused_before_the_first_line(tmp_path):
    with pytest.raises(ReadError, match="does not exist"):
        iter_lines(tmp_path / "missing")


def test_a_read_that_fails_in_the_middle_gives_what_was_had(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(b"0123456\n" * 400_000)

    class Failing:
        def __init__(self, file) -> None:
            self.file, self.reads = file, 0

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def fileno(self) -> int:
            return self.file.fileno()

        def read(self, count: int) -> bytes:
            self.reads += 1
            if self.reads == 3:
                raise OSError(5, "Input/output error")
            return self.file.read(count)

    from rldk.log import blocks

    real = blocks.open_for_reading
    monkeypatch.setattr(blocks, "check_readable", lambda path: None)
    monkeypatch.setattr(blocks, "open_for_reading", lambda path: Failing(real(path)))
    monkeypatch.setattr("rldk.log.lines.check_readable", lambda path: None)
    problems = LineProblems()
    assert sum(1 for _ in iter_lines(path, problems=problems)) == 2 * (1 << 20) // 8
    assert problems.damage == "reading stopped after 2097152 bytes: Input/output error"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_can_be_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for piece in (b"\x1f", b"a\nb", b"\nc\n"):
                pipe.write(piece)

    thread = threading.Thread(target=write)
    thread.start()
    said: list[int] = []
    assert list(iter_lines(path, progress=lambda _, total: said.append(total))) == [(1, b"\x1fa"), (2, b"b"), (3, b"c")]
    thread.join()
    assert set(said) == {0}


def test_only_the_first_problems_are_kept():
    problems = LineProblems(limit=3)
    for line in (5, 2, 9, 11, 12):
        problems.add(line, "bad")
    assert problems.total == 5
    assert [line for line, _ in problems.skipped] == [2, 5, 9]
    assert problems.summary() == "5 lines skipped (line 2: bad; line 5: bad; line 9: bad; and 2 more)"
