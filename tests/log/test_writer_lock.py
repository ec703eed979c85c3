from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rldk.core.errors import LogLockedError
from rldk.log import EventReader, EventWriter
from rldk.log import opening as opening_module

HOLDER = """
import os, sys, time
from rldk.core.event import Event
from rldk.log import EventWriter
writer = EventWriter(sys.argv[1])
writer.write(Event(1))
if sys.argv[2] == "child":
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
if sys.argv[2] == "closed":
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    writer.close()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder():
    started: list[subprocess.Popen[str]] = []

    def start(path, kind: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLDER, str(path), kind]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_second_writer_of_this_process_is_refused(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as writer:
        writer.write(event(1))
        with pytest.raises(LogLockedError, match=r"events\.jsonl is being written by another writer.*path of its own"):
            EventWriter(path)
        link = tmp_path / "link.jsonl"
        link.symlink_to(path)
        with pytest.raises(LogLockedError):
            EventWriter(link)
        with pytest.raises(LogLockedError):
            EventWriter(path, resume_step=0)
        assert [e.step for e in EventReader(path)] == [1]
        writer.write(event(2))
    EventWriter(path).close()
    assert steps(path) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["alone", "child"])
def test_the_lock_lasts_until_its_process_dies_and_no_longer(tmp_path, holder, steps, event, kind):
    """Also when a forked worker, which has a copy of the descriptor, outlives the one that was killed."""
    path = tmp_path / "events.jsonl"
    process = holder(path, kind)
    with pytest.raises(LogLockedError):
        EventWriter(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 5
    while True:
        try:
            writer = EventWriter(path)
            break
        except LogLockedError:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    writer.write(event(2))
    writer.close()
    assert steps(path) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_closing_unlocks_while_a_forked_child_lives(tmp_path, holder):
    path = tmp_path / "events.jsonl"
    holder(path, "closed")
    EventWriter(path).close()


def test_closing_unlocks_whoever_has_a_copy_of_the_descriptor(tmp_path):
    path = tmp_path / "events.jsonl"
    writer = EventWriter(path)
    copy = os.dup(writer._out.fd)
    try:
        writer.close()
        EventWriter(path).close()
    finally:
        os.close(copy)


def test_a_log_replaced_between_opening_and_locking_is_opened_again(tmp_path, event, steps, monkeypatch):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"step":1}\n')
    real, calls = opening_module.lock, []

    def slow_lock(fd: int) -> bool:
        calls.append(fd)
        if len(calls) == 1:  # the other one resumes: a new file takes the place of the one that we have open
            (tmp_path / "new").write_bytes(b'{"step":5}\n')
            (tmp_path / "new").replace(path)
        if len(calls) == 2:
            path.unlink()
        return real(fd)

    monkeypatch.setattr(opening_module, "lock", slow_lock)
    with EventWriter(path) as writer:
        writer.write(event(6))
    assert len(calls) == 3
    assert steps(path) == [6]


def test_where_locks_do_not_exist_it_writes_and_says_so(tmp_path, event, steps, monkeypatch, caplog):
    def unsupported(fd: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("rldk.log.lock._take", unsupported)
    with EventWriter(tmp_path / "events.jsonl") as writer:
        assert writer.write(event(1))
    assert len(caplog.messages) == 1 and "cannot lock" in caplog.messages[0]
    assert steps(tmp_path / "events.jsonl") == [1]
