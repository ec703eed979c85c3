from __future__ import annotations

import logging

import pytest

from rldk.core.event import Event
from rldk.log import EventReader, EventWriter


@pytest.fixture(autouse=True)
def _log_is_looked_at(caplog):
    caplog.set_level(logging.INFO, logger="rldk")


def lines_of(count: int) -> list[bytes]:
    return [Event(step, {"loss": 0.5, "kl": float("nan")}, notes=["ü"]).to_json() + b"\n" for step in range(count)]


@pytest.mark.parametrize("nuls", [0, 1, 5000])
def test_a_log_cut_anywhere_in_its_last_two_lines_is_made_whole(tmp_path, steps, nuls):
    path = tmp_path / "events.jsonl"
    lines = lines_of(4)
    content = b"".join(lines)
    for cut in range(len(lines[0] + lines[1]), len(content) + 1):
        left = content[:cut]
        path.write_bytes(left + b"\0" * nuls)
        whole = left.count(b"\n")
        half = left.rpartition(b"\n")[2]
        complete = half + b"\n" in lines
        with EventWriter(path) as writer:
            assert (writer.repair is None) == (not half and not nuls)
            writer.write(Event(99))
        assert steps(path) == [*range(whole + complete), 99]
        kept = left + b"\n" if complete else left[: len(left) - len(half)]
        assert path.read_bytes() == kept + Event(99).to_json() + b"\n"


def test_what_was_done_is_told(tmp_path, caplog):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"step":1}\n{"step":2}')
    with EventWriter(path) as writer:
        assert writer.repair == "added the missing last newline"
    path.write_bytes(b'{"step":1}\n{"step":2\0\0\0')
    with EventWriter(path) as writer:
        assert writer.repair == "cut off 3 trailing NUL bytes and cut off a half-written last line of 9 bytes"
    assert [record.name for record in caplog.records] == ["rldk", "rldk"]
    assert "was not closed properly: added the missing" in caplog.messages[0]
    assert "half-written last line of 9 bytes" in caplog.messages[1]


@pytest.mark.parametrize("content", [b"\0" * 200_000, b"{", b'{"step"', b""])
def test_a_log_with_no_whole_event_becomes_empty(tmp_path, steps, content):
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    with EventWriter(path) as writer:
        writer.write(Event(1))
    assert steps(path) == [1]


@pytest.mark.parametrize("foreign", [b"Traceback (most recent call last)", b"\x89PNG\r\n\x1a\n\xff\xd8", b"[1", b"7"])
def test_a_last_line_that_is_none_of_ours_is_kept(tmp_path, foreign):
    path = tmp_path / "events.jsonl"
    path.write_bytes(foreign)
    with EventWriter(path) as writer:
        writer.write(Event(1))
    assert path.read_bytes() == foreign + b'\n{"step":1,"metrics":{}}\n'


def test_a_half_line_of_many_blocks_is_cut(tmp_path, steps):
    path = tmp_path / "events.jsonl"
    first = Event(1).to_json() + b"\n"
    path.write_bytes(first + b'{"step":2,"notes":["' + b"x" * 300_000)
    with EventWriter(path):
        pass
    assert path.read_bytes() == first


def test_nul_bytes_in_the_middle_stay_where_they_are(tmp_path):
    path = tmp_path / "events.jsonl"
    content = b'{"step":1}\n\0\0\0{"step":2}\n\0\0\n{"step":3}\n'
    path.write_bytes(content)
    with EventWriter(path) as writer:
        assert writer.repair is None
    assert path.read_bytes() == content
    reader = EventReader(path)
    assert [event.step for event in reader] == [1, 2, 3]
    assert [line for line, _ in reader.problems.skipped] == [3]
