from __future__ import annotations

import gzip
import os
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter, LogTail
from rldk.log.tail import GrowingFile


def row(step: int, **more: object) -> bytes:
    return Event(step, extra=dict(more)).to_json() + b"\n"


def all_new(tail: LogTail) -> list[int]:
    """The steps of all events that are there."""
    found = [event.step for event in tail.read_new()]
    while not tail.caught_up:
        found += [event.step for event in tail.read_new()]
    return found


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def open_tail(log):
    opened: list[LogTail] = []

    def start(**options: int) -> LogTail:
        opened.append(LogTail(log, **options))
        return opened[-1]

    yield start
    for tail in opened:
        tail.close()


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1))
def test_lines_that_come_in_any_pieces(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("follow") / "events.jsonl"
    content = b"".join(row(step) if step % 3 else b"bad\r\n" for step in range(8))
    with path.open("wb", buffering=0) as file, closing(LogTail(path)) as tail:
        found, position = [], 0
        while position < len(content):
            for size in sizes:
                file.write(content[position : position + size])
                position += size
                found += all_new(tail)
                whole = content[:position].count(b"\n")
                assert len(found) + tail.problems.total == whole
    assert found == [1, 2, 4, 5, 7]
    assert [line for line, _ in tail.problems.skipped] == [1, 4, 7]
    assert tail.generation == 0


def test_a_file_that_comes_later(log, open_tail):
    tail = open_tail()
    assert all_new(tail) == []
    log.write_bytes(row(1))
    assert all_new(tail) == [1]
    assert tail.generation == 0


def test_a_shortened_file_is_read_again(log, open_tail):
    log.write_bytes(row(1) + b"bad\n" + row(2))
    tail = open_tail()
    assert all_new(tail) == [1, 2]
    log.write_bytes(row(7))
    assert all_new(tail) == [7]
    assert tail.generation == 1
    assert tail.problems.total == 0


def test_an_emptied_file_is_told_before_anything_new_comes(log, open_tail):
    log.write_bytes(row(1))
    tail = open_tail()
    all_new(tail)
    log.write_bytes(b"")
    assert all_new(tail) == []
    assert tail.generation == 1
    assert all_new(tail) == []
    assert tail.generation == 1


def test_a_file_shortened_and_grown_beyond_where_it_was(log, open_tail):
    with EventWriter(log) as writer:
        for step in range(10):
            writer.write(Event(step, wall_time=1.0))
    tail = open_tail()
    assert all_new(tail) == list(range(10))
    inode = log.stat().st_ino
    with EventWriter(log, resume_step=4) as writer:
        for step in range(5, 30):
            writer.write(Event(step, wall_time=2.0))
    assert log.stat().st_ino == inode
    assert all_new(tail) == list(range(30))
    assert tail.generation == 1


def test_a_half_line_that_its_writer_takes_back_starts_nothing_over(log, open_tail):
    """What a crash leaves, and the restarted run repairs."""
    log.write_bytes(row(1) + b'{"step":2,"metrics":{"lo')
    tail = open_tail()
    assert all_new(tail) == [1]
    with EventWriter(log) as writer:
        assert writer.repair is not None
        assert all_new(tail) == []
        writer.write(Event(2))
        assert all_new(tail) == [2]
    assert tail.generation == 0 and tail.problems.total == 0


def test_rotation_finishes_the_old_file_first(log, open_tail, tmp_path):
    with log.open("ab", buffering=0) as old:
        old.write(row(1))
        tail = open_tail()
        assert all_new(tail) == [1]
        log.rename(tmp_path / "events.jsonl.1")
        old.write(row(2))
        assert all_new(tail) == [2]
        assert tail.generation == 0
        old.write(row(3) + b'{"step":4}')
        log.write_bytes(row(5) + row(6))
        assert [event.step for event in tail.read_new()] == [3]
        assert [event.step for event in tail.read_new()] == [4]
        assert tail.generation == 0
        assert [event.step for event in tail.read_new()] == [5, 6]
    assert tail.generation == 1


def test_what_is_written_just_before_the_rotation_is_read_however_much(log, open_tail, tmp_path, monkeypatch):
    log.write_bytes(row(0))
    tail = open_tail()
    assert all_new(tail) == [0]
    real = GrowingFile.was_replaced

    def rotate_now(file: GrowingFile) -> bool:
        monkeypatch.setattr(GrowingFile, "was_replaced", real)
        with log.open("ab") as old:
            old.writelines(row(step, note="x" * 1000) for step in range(1, 3000))
        log.rename(tmp_path / "old")
        log.write_bytes(row(3000))
        return real(file)

    monkeypatch.setattr(GrowingFile, "was_replaced", rotate_now)
    assert all_new(tail) == list(range(1, 3001))
    assert tail.problems.total == 0


def test_a_torn_end_of_a_rotated_file_is_reported(log, open_tail, tmp_path):
    log.write_bytes(row(1) + b'{"step')
    tail = open_tail()
    assert all_new(tail) == [1]
    log.rename(tmp_path / "old")
    log.write_bytes(row(2))
    tail.read_new()
    assert tail.problems.torn and tail.problems.skipped[0][0] == 2
    assert all_new(tail) == [2]


def test_deletion_and_a_new_file(log, open_tail):
    log.write_bytes(row(1))
    tail = open_tail()
    assert all_new(tail) == [1]
    log.unlink()
    assert all_new(tail) == []
    assert tail.generation == 0
    log.write_bytes(row(1))
    assert all_new(tail) == [1]
    assert tail.generation == 1


def test_a_resumed_run_that_rewrites_its_log(log, open_tail):
    log.write_bytes(b"".join(row(step) for step in (1, 9, 2)))
    tail = open_tail()
    assert all_new(tail) == [1, 9, 2]
    with EventWriter(log, resume_step=5) as writer:
        writer.write(Event(6))
        assert all_new(tail) == [1, 2, 6]
    assert tail.generation == 1


def test_a_link_that_points_elsewhere_now(tmp_path, open_tail, log):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(row(ord(name)))
    log.symlink_to(tmp_path / "a")
    tail = open_tail()
    assert all_new(tail) == [97]
    log.unlink()
    log.symlink_to(tmp_path / "b")
    assert all_new(tail) == [98]
    assert tail.generation == 1


ACTIONS = st.sampled_from(
    ["append", "half", "finish", "look", "empty", "rewrite", "shorten", "rotate", "delete", "create"]
)


@settings(deadline=None)
@given(st.lists(ACTIONS, max_size=25))
def test_in_the_end_the_last_generation_is_the_file(tmp_path_factory, actions):
    """Whatever happened to the file, and however seldom it was looked at."""
    folder = tmp_path_factory.mktemp("follow")
    path = folder / "events.jsonl"
    count, seen = 0, {0: []}

    def look() -> None:
        while True:
            events = tail.read_new()
            seen.setdefault(tail.generation, []).extend(event.step for event in events)
            if tail.caught_up:
                return

    with closing(LogTail(path)) as tail:
        for action in [*actions, "look"]:
            count += 1
            new = row(count, note="x" * (count % 5 * 30))
            if action == "look":
                look()
            elif action == "create":
                path.touch()
            elif action == "rewrite":
                path.write_bytes(new * 3)
            elif not path.exists():
                continue
            elif action == "append":
                with path.open("ab") as file:
                    file.write(new)
            elif action == "half":
                with path.open("ab") as file:
                    file.write(new[:8])
            elif action == "finish":
                with path.open("ab") as file:
                    file.write(b"\n")
            elif action == "empty":
                path.write_bytes(b"")
            elif action == "shorten":
                os.truncate(path, path.stat().st_size // 2)
            elif action == "rotate":
                path.rename(folder / f"old{count}")
            else:
                path.unlink()
        if path.exists():
            content = path.read_bytes()
            (folder / "whole").write_bytes(content[: content.rfind(b"\n") + 1])
            assert seen[tail.generation] == [event.step for event in EventReader(folder / "whole")]


def test_a_large_backlog_comes_in_bounded_portions(log, open_tail):
    log.write_bytes(b"".join(row(step, note="x" * 1000) for step in range(3000)))
    tail = open_tail()
    first = tail.read_new()
    assert 0 < len(first) < 1500 and not tail.caught_up
    assert all_new(tail) == list(range(len(first), 3000))


def test_a_line_of_several_blocks_is_put_together(log, open_tail):
    long = row(2, note="x" * 3_500_000)
    with log.open("ab", buffering=0) as file:
        tail = open_tail()
        found = []
        for start in range(0, len(long), 700_000):
            file.write(long[start : start + 700_000])
            found += all_new(tail)
        file.write(row(3))
        found += all_new(tail)
    assert found == [2, 3]


def test_an_endless_line_is_not_held(log, open_tail):
    tail = open_tail(max_line_bytes=1 << 21)
    with log.open("ab", buffering=0) as file:
        file.write(row(1))
        for _ in range(20):
            file.write(b"x" * (1 << 20))
            all_new(tail)
            assert len(tail._splitter._held) <= 3 << 20
        file.write(b"\n" + row(2))
        assert all_new(tail) == [2]
    assert [line for line, _ in tail.problems.skipped] == [2]


def test_what_cannot_be_followed(tmp_path, log):
    with pytest.raises(ReadError, match="not a regular file"):
        LogTail(tmp_path)
    log.write_bytes(gzip.compress(row(1)))
    with closing(LogTail(log)) as tail, pytest.raises(ReadError, match="compressed"):
        tail.read_new()
    (tmp_path / "file").touch()
    with pytest.raises(ReadError, match="cannot be followed: Not a directory"):
        LogTail(tmp_path / "file" / "events.jsonl")
