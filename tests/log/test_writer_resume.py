from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import LogWriteError
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter
from rldk.log.lines import MAX_LINE_BYTES

FOREIGN = [b"", b"   ", b"hello", b"[1]", b'{"steps": 9}', b'{"step": null}', b'{"step": 1.5}', b"\0\0", b"\xff\xfe{"]
CRLF = b'{"step": 7, "metrics": {}}\r'


def row(step: int, kind: int = 0) -> bytes:
    shapes = [Event(step, {"loss": 0.1}).to_json(), b'{"step": %d.0}' % step, b'{"step": "%d"}' % step]
    return shapes[kind]


rows = st.tuples(st.integers(-3, 12), st.integers(0, 2)).map(lambda pair: (pair[0], row(*pair)))
foreign = st.sampled_from(FOREIGN).map(lambda line: (None, line))


@settings(deadline=None)
@given(st.lists(st.one_of(rows, rows, foreign, st.just((7, CRLF))), max_size=25), st.integers(0, 13))
def test_exactly_the_later_rows_go(tmp_path_factory, lines, step):
    path = tmp_path_factory.mktemp("resume") / "events.jsonl"
    path.write_bytes(b"".join(line + b"\n" for _, line in lines))
    expected = [line for at, line in lines if at is None or at <= step]
    with EventWriter(path, resume_step=step) as writer:
        assert writer.removed_rows == len(lines) - len(expected)
        assert path.read_bytes() == b"".join(line + b"\n" for line in expected)
        assert writer.write(Event(step + 1))
    assert path.read_bytes() == b"".join(line + b"\n" for line in [*expected, Event(step + 1).to_json()])
    assert [file.name for file in path.parent.iterdir()] == ["events.jsonl"]


def test_a_resumed_run_repeats_no_step(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as writer:
        for step in range(100):
            writer.write(event(step))
    with EventWriter(path, resume_step=60) as writer:
        assert writer.removed_rows == 39
        for step in range(61, 80):
            writer.write(event(step))
    assert steps(path) == list(range(80))


def test_resuming_before_anything_was_written(tmp_path, event, steps):
    path = tmp_path / "events.jsonl"
    with EventWriter(path, resume_step=5) as writer:
        assert writer.removed_rows == 0
        writer.write(event(6))
    assert steps(path) == [6]


def test_a_torn_last_line_is_repaired_first(tmp_path, steps):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"step":9}\n{"step":1}\n{"step":8}\n{"step":2}')
    with EventWriter(path, resume_step=5) as writer:
        assert writer.repair is not None
    assert steps(path) == [1, 2]


@pytest.mark.parametrize("order", [[1, 2, 9], [1, 9, 2]], ids=["shortened", "replaced"])
def test_the_mode_and_the_link_stay(tmp_path, steps, order):
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_bytes(b"".join(row(step) + b"\n" for step in order))
    target.chmod(0o640)
    link.symlink_to(target)
    with EventWriter(link, resume_step=5) as writer:
        assert writer.removed_rows == 1
    assert link.is_symlink() and steps(link) == steps(target) == [1, 2]
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_the_ordinary_case_keeps_the_file_itself(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(row(step) + b"\n" for step in range(10)))
    before = path.stat().st_ino
    EventWriter(path, resume_step=4).close()
    assert path.stat().st_ino == before


def test_lines_too_long_to_read_are_kept(tmp_path):
    path = tmp_path / "events.jsonl"
    long = b'{"step": 99, "notes": "' + b"x" * (2 * MAX_LINE_BYTES) + b'"}'
    ends_like_a_row = b"x" * MAX_LINE_BYTES + row(9)
    path.write_bytes(b"\n".join([row(1), long, row(9), row(2), ends_like_a_row, b""]))
    EventWriter(path, resume_step=5).close()
    assert path.read_bytes() == b"\n".join([row(1), long, row(2), ends_like_a_row, b""])


def test_the_lock_is_held_while_the_file_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(row(step) + b"\n" for step in (1, 9, 2)))
    real, refused = os.replace, []

    def attempt() -> None:
        with pytest.raises(LogWriteError):
            EventWriter(path)
        refused.append(True)

    def replace(source, target) -> None:
        attempt()
        real(source, target)
        attempt()

    monkeypatch.setattr("os.replace", replace)
    with EventWriter(path, resume_step=5):
        attempt()
    assert len(refused) == 3


@pytest.mark.parametrize("call", ["os.open", "os.write", "os.fsync", "os.replace", "os.fchmod"])
def test_a_failure_leaves_the_old_file_and_says_so(tmp_path, monkeypatch, call):
    path = tmp_path / "events.jsonl"
    old = b"".join(row(step) + b"\n" for step in (1, 9, 2))
    path.write_bytes(old)
    real = getattr(os, call.removeprefix("os."))
    seen = []

    def full(*args, **kwargs):
        seen.append(args)
        if call == "os.open" and len(seen) == 1:
            return real(*args, **kwargs)  # the log itself
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(call, full)
    with pytest.raises(LogWriteError, match=r"events\.jsonl: No space left on device"):
        EventWriter(path, resume_step=5)
    monkeypatch.undo()
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == ["events.jsonl"]
    EventWriter(path, resume_step=5).close()
    assert [e.step for e in EventReader(path)] == [1, 2]


CRASHES = """
import json, os, sys
from rldk.log import EventWriter

CALLS = ["open", "write", "fsync", "fchmod", "fchown", "replace", "ftruncate", "unlink", "close", "read", "lseek"]
path, order = sys.argv[1], json.loads(sys.argv[2])
old = b"".join(b'{"step": %d}\\n' % step for step in order)
new = b"".join(b'{"step": %d}\\n' % step for step in order if step <= 5)
outcomes = {"old": 0, "new": 0, "other": 0, "lost_after": 0, "left_over": 0}


def crash_at(number, after):
    count = 0
    def wrap(real):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count == number and not after:
                os._exit(9)
            here = count == number
            try:
                return real(*args, **kwargs)
            finally:
                if here:
                    os._exit(9)
        return call
    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name)))
    EventWriter(path, resume_step=5)
    os._exit(0)


number, finished = 0, False
while not finished:
    number += 1
    for after in (False, True):
        with open(path, "wb") as file:
            file.write(old)
        pid = os.fork()
        if pid == 0:
            crash_at(number, after)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status in (0, 9), status
        finished = status == 0
        with open(path, "rb") as file:
            content = file.read()
        outcomes["old" if content == old else "new" if content == new else "other"] += 1
        EventWriter(path, resume_step=5).close()
        with open(path, "rb") as file:
            outcomes["lost_after"] += file.read() != new
        outcomes["left_over"] += os.listdir(os.path.dirname(path)) != [os.path.basename(path)]
print(json.dumps(outcomes))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("order", [[1, 2, 9, 8], [1, 9, 2, 8, 3]], ids=["shortened", "replaced"])
def test_a_crash_at_any_system_call_leaves_the_old_file_or_the_new(tmp_path, run_script, order):
    outcomes = run_script(CRASHES, tmp_path / "events.jsonl", json.dumps(order))
    assert outcomes["old"] > 10 and outcomes["new"] > 2
    assert (outcomes["other"], outcomes["lost_after"], outcomes["left_over"]) == (0, 0, 0)
