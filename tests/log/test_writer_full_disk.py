from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.event import Event
from rldk.log import EventWriter

LIMITED = """
import json, logging, resource, sys
from rldk.core.event import Event
from rldk.log import EventWriter

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append([record.levelname, record.getMessage()])
logging.getLogger("rldk").addHandler(handler)
logging.getLogger("rldk").setLevel("INFO")

path = sys.argv[1]
read = lambda: open(path, "rb").read()
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
writer = EventWriter(path)
answers = [writer.write(Event(step, notes=["x" * 300])) for step in range(100)]
full = {"said": list(said), "pending": writer.pending, "size": len(read()), "whole": read().endswith(b"\\n"),
        "answers": answers, "sync": writer.sync()}
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
again = writer.write(Event(100, notes=["x"]))
writer.close()
print(json.dumps({"full": full, "again": again, "said": said, "pending": writer.pending, "dropped": writer.dropped}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_real_limit_is_said_once_and_survived(tmp_path, run_script, steps):
    path = tmp_path / "events.jsonl"
    told = run_script(LIMITED, path)
    full = told["full"]
    written = sum(full["answers"])
    assert 0 < written < 100
    assert full["answers"] == [True] * written + [False] * (100 - written)
    assert full["pending"] == 100 - written
    assert full["whole"] and full["size"] <= 20_000 and full["sync"] is False
    assert [level for level, _ in full["said"]] == ["WARNING"]
    assert str(path) in full["said"][0][1] and "File too large" in full["said"][0][1]
    assert told["again"] is True
    assert [message for _, message in told["said"][1:]] == [
        f"The event log {path} is written again; events lost meanwhile: 0."
    ]
    assert (told["pending"], told["dropped"]) == (0, 0)
    assert steps(path) == list(range(101))


def test_the_warning_is_seen_by_a_program_that_set_up_no_logging(tmp_path):
    script = LIMITED.replace('logging.getLogger("rldk").addHandler(handler)', "")
    command = [sys.executable, "-c", script, tmp_path / "events.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.count("cannot be written") == 1


class Disk:
    """Stands for `os.write` on a disk with so many bytes left: what does not fit is written in part."""

    def __init__(self, room: float) -> None:
        self.room = room
        self.write_to_file = os.write

    def write(self, fd: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.write_to_file(fd, data[: int(min(self.room, len(data)))])
        self.room -= written
        return written


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.one_of(st.none(), st.integers(0, 900))), min_size=1, max_size=40),
    st.sampled_from([500, 1 << 20]),
)
def test_any_course_of_a_disk_leaves_whole_lines_in_order(tmp_path_factory, course, max_pending_bytes):
    path = tmp_path_factory.mktemp("disk") / "events.jsonl"
    disk = Disk(0)
    logging.disable(logging.CRITICAL)
    patch = pytest.MonkeyPatch()
    try:
        with EventWriter(path, max_pending_bytes=max_pending_bytes) as writer:
            patch.setattr("rldk.log.appender.os.write", disk.write)
            kept = []
            for step, (padding, freed) in enumerate(course):
                if freed is not None:
                    disk.room = freed
                dropped = writer.dropped
                acknowledged = writer.write(Event(step, notes=["x" * padding]))
                if writer.dropped == dropped:
                    kept.append(step)
                content = path.read_bytes()
                assert not content or content.endswith(b"\n")
                on_disk = [Event.from_json(line).step for line in content.splitlines()]
                assert on_disk == kept[: len(on_disk)]
                assert len(on_disk) + writer.pending == len(kept)
                assert acknowledged == (on_disk[-1:] == [step])
            disk.room = float("inf")
            assert writer.sync()
            assert writer.pending == 0
        assert [Event.from_json(line).step for line in path.read_bytes().splitlines()] == kept
        assert len(kept) + writer.dropped == len(course)
    finally:
        patch.undo()
        logging.disable(logging.NOTSET)


def test_beyond_the_bound_events_are_dropped_and_counted(tmp_path, event, steps, monkeypatch, caplog):
    path = tmp_path / "events.jsonl"
    disk = Disk(0)
    with EventWriter(path, max_pending_bytes=1000) as writer:
        monkeypatch.setattr("rldk.log.appender.os.write", disk.write)
        for step in range(10):
            assert writer.write(event(step, padding=200)) is False
        assert (writer.pending, writer.dropped) == (3, 7)
        disk.room = 10_000
        assert writer.write(event(10))
        assert (writer.pending, writer.dropped) == (0, 7)
        disk.room = 0
        for step in range(11, 14):
            writer.write(event(step, padding=200))
        assert (writer.pending, writer.dropped) == (3, 7), "what was written makes room again"
        disk.room = 10_000
    assert steps(path) == [0, 1, 2, 10, 11, 12, 13]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4, "once each time"
    assert "No space left on device" in caplog.messages[0]
    assert "events lost meanwhile: 7" in caplog.messages[1]


def test_closing_on_a_full_disk_says_what_is_lost(tmp_path, event, monkeypatch, caplog):
    writer = EventWriter(tmp_path / "events.jsonl")
    monkeypatch.setattr("rldk.log.appender.os.write", Disk(0).write)
    for step in range(3):
        writer.write(event(step))
    writer.close()
    assert writer.dropped == 3 and writer.pending == 0
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert "3 events are lost" in caplog.messages[1]
    EventWriter(tmp_path / "events.jsonl").close()


def test_a_half_line_that_cannot_be_taken_back_at_once_is_taken_back_later(tmp_path, event, steps, monkeypatch):
    path = tmp_path / "events.jsonl"
    disk = Disk(30)

    def broken(fd: int, length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with EventWriter(path) as writer:
        monkeypatch.setattr("rldk.log.appender.os.write", disk.write)
        real = os.ftruncate
        monkeypatch.setattr("rldk.log.repair.os.ftruncate", broken)
        assert writer.write(event(1)) is False
        assert len(path.read_bytes()) == 30
        disk.room = 1000
        assert writer.write(event(2)) is False
        monkeypatch.setattr("rldk.log.repair.os.ftruncate", real)
        assert writer.write(event(3)) is True
    assert steps(path) == [1, 2, 3]


def test_a_failing_sync_is_said_and_not_raised(tmp_path, event, monkeypatch, caplog):
    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with EventWriter(tmp_path / "events.jsonl") as writer:
        monkeypatch.setattr("rldk.log.appender.os.fsync", broken)
        assert writer.write(event(1))
        assert writer.sync() is False
        assert writer.sync() is False
        monkeypatch.undo()
        assert writer.sync() is True
    assert len(caplog.messages) == 2
    assert "Input/output error" in caplog.messages[0]
