from __future__ import annotations

import os
import threading

import pytest

from rldk.core.errors import LogWriteError
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter


def test_an_event_is_in_the_file_when_write_returns(tmp_path, event, steps):
    path = tmp_path / "new" / "folders" / "events.jsonl"
    writer = EventWriter(path)
    for step in range(5):
        assert writer.write(event(step)) is True
        assert steps(path) == list(range(step + 1))
    writer.close()


def test_what_is_written_is_read_back_the_same(tmp_path):
    path = tmp_path / "events.jsonl"
    event = Event(
        3, {"kl": float("nan"), "reward": float("-inf"), "loss": 0.1}, 100.5, {"seed": 42}, {"tokens_in": 7},
        {"run_id": "R", "phase": "train"}, ["line\nbreak", "ünï\u2028code", "\ud800"], ("missing",), {"extra": [1]},
    )  # fmt: skip
    with EventWriter(path) as writer:
        assert writer.write(event)
    (back,) = EventReader(path)
    assert repr(back) == repr(event)  # repr, since NaN is not equal to itself
    assert path.read_bytes().count(b"\n") == 1


def test_reopening_appends(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    for step in range(3):
        with EventWriter(path) as writer:
            assert writer.repair is None
            writer.write(event(step))
    assert steps(path) == [0, 1, 2]


def test_writing_after_close_is_an_error_that_says_so(tmp_path, event):
    writer = EventWriter(tmp_path / "events.jsonl")
    writer.close()
    writer.close()
    assert writer.closed
    assert writer.sync() is False
    with pytest.raises(LogWriteError, match=r"events\.jsonl is closed\. Open a new EventWriter"):
        writer.write(event(1))


def test_an_event_that_cannot_be_json_leaves_no_trace(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    circle: list[object] = []
    circle.append(circle)
    with EventWriter(path) as writer:
        with pytest.raises((ValueError, RecursionError)):
            writer.write(Event(1, extra={"circle": circle}))
        assert writer.write(event(2))
    assert steps(path) == [2]


def test_threads_do_not_mix_their_lines(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as writer:

        def work(first: int) -> None:
            for step in range(first, first + 200):
                assert writer.write(event(step, padding=step % 7 * 1000))

        threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = steps(path)
    assert sorted(found) == [1000 * n + k for n in range(4) for k in range(200)]
    for n in range(4):
        mine = [step for step in found if step // 1000 == n]
        assert mine == sorted(mine)


def test_a_signal_handler_may_write_too(tmp_path, event, steps, monkeypatch):
    """As if the signal came in the middle of a write of the same thread."""
    path = tmp_path / "events.jsonl"
    real, calls = os.write, []

    def interrupted(fd: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 1:
            assert writer.write(event(1))
        return real(fd, data)

    with EventWriter(path) as writer:
        monkeypatch.setattr("rldk.log.appender.os.write", interrupted)
        assert writer.write(event(2))
        monkeypatch.undo()
    assert steps(path) == [1, 2]


def test_an_interrupt_in_the_middle_of_a_line_takes_the_half_line_back(tmp_path, event, steps, monkeypatch):
    path = tmp_path / "events.jsonl"
    real = os.write

    def interrupted(fd: int, data: bytes) -> int:
        real(fd, data[:20])
        raise KeyboardInterrupt

    with EventWriter(path) as writer:
        writer.write(event(1))
        monkeypatch.setattr("rldk.log.appender.os.write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.write(event(2))
        monkeypatch.undo()
        assert steps(path) == [1]
        writer.write(event(3))
    assert steps(path) == [1, 3]


def test_a_forgotten_writer_lets_go_of_the_file(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    EventWriter(path).write(event(1))
    with EventWriter(path) as writer:
        writer.write(event(2))
    assert steps(path) == [1, 2]


def test_sync_reaches_the_disk(tmp_path, event, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr("rldk.log.appender.os.fsync", lambda fd: synced.append(fd) or real(fd))
    with EventWriter(tmp_path / "events.jsonl") as writer:
        writer.write(event(1))
        before = len(synced)
        assert writer.sync() is True
        assert len(synced) == before + 1
    assert len(synced) == before + 2


FORKED = """
import json, os, sys
from rldk.core.event import Event
from rldk.log import EventWriter
writer = EventWriter(sys.argv[1])
writer.write(Event(1))
out, into = os.pipe()
pid = os.fork()
if pid == 0:
    said = [writer.write(Event(2)), writer.sync(), writer.closed]
    writer.close()
    os.write(into, json.dumps(said).encode())
    os._exit(0)
os.waitpid(pid, 0)
child = json.loads(os.read(out, 1000))
try:
    EventWriter(sys.argv[1])
    locked = False
except OSError:
    locked = True
said = writer.write(Event(3))
writer.close()
print(json.dumps([child, locked, said]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_write_nor_unlock(tmp_path, run_script, steps):
    path = tmp_path / "events.jsonl"
    child, still_locked, parent_writes = run_script(FORKED, path)
    assert child == [False, False, True]
    assert still_locked and parent_writes
    assert steps(path) == [1, 3]
