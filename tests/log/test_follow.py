from __future__ import annotations

import gzip
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import ReadError, UsageError
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter, Follower, follow_events
from rldk.log.growing import GrowingFile


def row(step: int, **more: object) -> bytes:
    return Event(step, extra=dict(more)).to_json() + b"\n"


def all_new(follower: Follower) -> list[int]:
    """The steps of all events that are there."""
    found = [event.step for event in follower.read_new()]
    while not follower.caught_up:
        found += [event.step for event in follower.read_new()]
    return found


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def follow(log):
    opened: list[Follower] = []

    def start(**options: object) -> Follower:
        opened.append(Follower(log, **options))
        return opened[-1]

    yield start
    for follower in opened:
        follower.close()


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1))
def test_lines_that_come_in_any_pieces(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("follow") / "events.jsonl"
    content = b"".join(row(step) if step % 3 else b"bad\r\n" for step in range(8))
    with path.open("wb", buffering=0) as file, Follower(path) as follower:
        found, position = [], 0
        while position < len(content):
            for size in sizes:
                file.write(content[position : position + size])
                position += size
                found += all_new(follower)
                whole = content[:position].count(b"\n")
                assert len(found) + follower.skipped_total == whole
    assert found == [1, 2, 4, 5, 7]
    assert [line for line, _ in follower.problems.skipped] == [1, 4, 7]
    assert follower.generation == 0


def test_a_file_that_comes_later(log, follow):
    follower = follow(from_start=False)
    assert all_new(follower) == []
    log.write_bytes(row(1))
    assert all_new(follower) == [1]
    assert follower.generation == 0


def test_only_what_comes_after_now(log, follow):
    log.write_bytes(row(1) + row(2) + b'{"step"')
    follower = follow(from_start=False)
    assert all_new(follower) == []
    with log.open("ab") as file:
        file.write(b": 3}\nbad\n" + row(4))
    assert all_new(follower) == [3, 4]
    assert [line for line, _ in follower.problems.skipped] == [4]


def test_a_shortened_file_is_read_again(log, follow):
    log.write_bytes(row(1) + b"bad\n" + row(2))
    follower = follow()
    assert all_new(follower) == [1, 2]
    log.write_bytes(row(7))
    assert all_new(follower) == [7]
    assert (follower.generation, follower.started_over_by) == (1, "truncated")
    assert follower.problems.total == 0 and follower.skipped_total == 1


def test_an_emptied_file_is_told_before_anything_new_comes(log, follow):
    log.write_bytes(row(1))
    follower = follow()
    all_new(follower)
    log.write_bytes(b"")
    assert all_new(follower) == []
    assert follower.generation == 1
    assert all_new(follower) == []
    assert follower.generation == 1


def test_a_file_shortened_and_grown_beyond_where_it_was(log, follow):
    with EventWriter(log) as writer:
        for step in range(10):
            writer.write(Event(step, wall_time=1.0))
    follower = follow()
    assert all_new(follower) == list(range(10))
    inode = log.stat().st_ino
    with EventWriter(log, resume_step=4) as writer:
        for step in range(5, 30):
            writer.write(Event(step, wall_time=2.0))
    assert log.stat().st_ino == inode
    assert all_new(follower) == list(range(30))
    assert (follower.generation, follower.started_over_by) == (1, "truncated")


def test_a_half_line_that_its_writer_takes_back_starts_nothing_over(log, follow):
    """What a crash leaves, and the restarted run repairs."""
    log.write_bytes(row(1) + b'{"step":2,"metrics":{"lo')
    follower = follow()
    assert all_new(follower) == [1]
    with EventWriter(log) as writer:
        assert writer.repair is not None
        assert all_new(follower) == []
        writer.write(Event(2))
        assert all_new(follower) == [2]
    assert follower.generation == 0 and follower.skipped_total == 0


def test_rotation_finishes_the_old_file_first(log, follow, tmp_path):
    with log.open("ab", buffering=0) as old:
        old.write(row(1))
        follower = follow()
        assert all_new(follower) == [1]
        log.rename(tmp_path / "events.jsonl.1")
        old.write(row(2))
        assert all_new(follower) == [2]
        assert follower.generation == 0
        old.write(row(3) + b'{"step":4}')
        log.write_bytes(row(5) + row(6))
        assert [event.step for event in follower.read_new()] == [3]
        assert [event.step for event in follower.read_new()] == [4]
        assert follower.generation == 0
        assert [event.step for event in follower.read_new()] == [5, 6]
    assert (follower.generation, follower.started_over_by) == (1, "replaced")


def test_what_is_written_just_before_the_rotation_is_read_however_much(log, follow, tmp_path, monkeypatch):
    log.write_bytes(row(0))
    follower = follow()
    assert all_new(follower) == [0]
    real = GrowingFile.was_replaced

    def rotate_now(file: GrowingFile) -> bool:
        monkeypatch.setattr(GrowingFile, "was_replaced", real)
        with log.open("ab") as old:
            old.writelines(row(step, note="x" * 1000) for step in range(1, 3000))
        log.rename(tmp_path / "old")
        log.write_bytes(row(3000))
        return real(file)

    monkeypatch.setattr(GrowingFile, "was_replaced", rotate_now)
    assert all_new(follower) == list(range(1, 3001))
    assert follower.skipped_total == 0


def test_a_torn_end_of_a_rotated_file_is_reported(log, follow, tmp_path):
    log.write_bytes(row(1) + b'{"step')
    follower = follow()
    assert all_new(follower) == [1]
    log.rename(tmp_path / "old")
    log.write_bytes(row(2))
    follower.read_new()
    assert follower.problems.torn and follower.problems.skipped[0][0] == 2
    assert all_new(follower) == [2]
    assert follower.skipped_total == 1


def test_deletion_and_a_new_file(log, follow):
    log.write_bytes(row(1))
    follower = follow()
    assert all_new(follower) == [1]
    log.unlink()
    assert all_new(follower) == []
    assert follower.generation == 0
    log.write_bytes(row(1))
    assert all_new(follower) == [1]
    assert follower.generation == 1


def test_a_resumed_run_that_rewrites_its_log(log, follow):
    log.write_bytes(b"".join(row(step) for step in (1, 9, 2)))
    follower = follow()
    assert all_new(follower) == [1, 9, 2]
    with EventWriter(log, resume_step=5) as writer:
        writer.write(Event(6))
        assert all_new(follower) == [1, 2, 6]
    assert (follower.generation, follower.started_over_by) == (1, "replaced")


def test_a_link_that_points_elsewhere_now(tmp_path, follow, log):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(row(ord(name)))
    log.symlink_to(tmp_path / "a")
    follower = follow()
    assert all_new(follower) == [97]
    log.unlink()
    log.symlink_to(tmp_path / "b")
    assert all_new(follower) == [98]
    assert follower.generation == 1


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
            events = follower.read_new()
            seen.setdefault(follower.generation, []).extend(event.step for event in events)
            if follower.caught_up:
                return

    with Follower(path) as follower:
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
            assert seen[follower.generation] == [event.step for event in EventReader(folder / "whole")]


def test_iterating_waits_for_what_comes_and_stops_when_told(log):
    stop = threading.Event()
    found: list[int] = []

    def consume() -> None:
        with follow_events(log, poll=0.01, stop=stop) as events:
            found.extend(event.step for event in events)

    thread = threading.Thread(target=consume)
    thread.start()
    with EventWriter(log) as writer:
        for step in range(50):
            writer.write(Event(step))
            time.sleep(0.001)
    deadline = time.monotonic() + 10
    while len(found) < 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    thread.join(5)
    assert not thread.is_alive()
    assert found == list(range(50))


@pytest.mark.parametrize("kind", ["event", "function", "method"])
def test_a_stop_is_heard_long_before_the_next_look(log, kind):
    event = threading.Event()
    stop = {"event": event, "function": event.is_set, "method": None}[kind]
    with Follower(log, poll=60, stop=stop) as follower:
        threading.Timer(0.05, follower.stop if kind == "method" else event.set).start()
        before = time.monotonic()
        assert list(follower) == []
        assert time.monotonic() - before < 5


def test_a_stop_between_two_events_loses_none(log, follow):
    log.write_bytes(row(1) + row(2) + row(3))
    follower = follow(poll=0.01)
    for event in follower:
        assert event.step == 1
        follower.stop()
    assert [event.step for event in follower.read_new()] == [2, 3]


def test_it_ends_when_nothing_comes_for_long(log, follow):
    log.write_bytes(row(1))
    before = time.monotonic()
    assert [event.step for event in follow(poll=0.01, idle_timeout=0.1)] == [1]
    assert 0.1 <= time.monotonic() - before < 5


def test_it_does_not_spin(log):
    with Follower(log, poll=0.05, idle_timeout=0.5) as follower:
        before = time.process_time()
        assert list(follower) == []
        assert time.process_time() - before < 0.1
    with pytest.raises(UsageError, match="poll"):
        Follower(log, poll=0)


def test_a_large_backlog_comes_in_bounded_portions(log, follow):
    log.write_bytes(b"".join(row(step, note="x" * 1000) for step in range(3000)))
    follower = follow()
    first = follower.read_new()
    assert 0 < len(first) < 1500 and not follower.caught_up
    assert all_new(follower) == list(range(len(first), 3000))


def test_a_line_of_several_blocks_is_put_together(log, follow):
    long = row(2, note="x" * 3_500_000)
    with log.open("ab", buffering=0) as file:
        follower = follow()
        found = []
        for start in range(0, len(long), 700_000):
            file.write(long[start : start + 700_000])
            found += all_new(follower)
        file.write(row(3))
        found += all_new(follower)
    assert found == [2, 3]


def test_an_endless_line_is_not_held(log, follow):
    follower = follow(max_line_bytes=1 << 21)
    with log.open("ab", buffering=0) as file:
        file.write(row(1))
        for _ in range(20):
            file.write(b"x" * (1 << 20))
            all_new(follower)
            assert len(follower._splitter._held) <= 3 << 20
        file.write(b"\n" + row(2))
        assert all_new(follower) == [2]
    assert [line for line, _ in follower.problems.skipped] == [2]


def test_what_cannot_be_followed(tmp_path, log):
    with pytest.raises(ReadError, match="not a regular file"):
        Follower(tmp_path)
    log.write_bytes(gzip.compress(row(1)))
    with Follower(log) as follower, pytest.raises(ReadError, match="compressed"):
        follower.read_new()
    (tmp_path / "file").touch()
    with pytest.raises(ReadError, match="cannot be followed: Not a directory"):
        Follower(tmp_path / "file" / "events.jsonl")
