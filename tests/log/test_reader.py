from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from rldk.core.errors import ReadError
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter


def read(path) -> tuple[list[int], EventReader]:
    reader = EventReader(path)
    return [event.step for event in reader], reader


def test_what_is_no_event_is_counted_and_located(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"step": 1}\r\n\r\nnot json\r\n{"step": 2, "metrics": {"kl": NaN}}\n[1]\n'
        b'{"step": 3, "notes": ["\xff\xfe"]}\n{"loss": 1}\n{"step": 4, "metrics": 5}\n\0\0\n{"step": 5}'
    )
    steps, reader = read(path)
    assert steps == [1, 2, 3, 5]
    assert reader.events == 4 and reader.problems.total == 5 and not reader.problems.torn
    assert [line for line, _ in reader.problems.skipped] == [3, 5, 7, 8, 9]
    reasons = [reason for _, reason in reader.problems.skipped]
    assert reasons[0].startswith("not JSON: ")
    assert reasons[1] == "Expected a JSON object, got list."
    assert reasons[2] == "Expected `step` to be a whole number, got None."
    assert reasons[3] == "Expected `metrics` to be an object, got 5."
    assert "NUL bytes" in reasons[4]
    assert reader.summary().startswith(f"{path}: 5 lines skipped (line 3: not JSON")


def test_a_torn_last_line_is_told_from_a_whole_one(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}')
    steps, reader = read(path)
    assert (steps, reader.problems.torn, reader.problems.skipped) == ([1, 2], False, [])
    path.write_bytes(b'{"step": 1}\n{"step": 2')
    steps, reader = read(path)
    assert (steps, reader.problems.torn, reader.problems.total) == ([1], True, 1)
    assert reader.problems.skipped[0][0] == 2 and reader.problems.skipped[0][1].startswith("torn: the last line has no newline")
    path.write_bytes(b'{"step": 1}\n{"step": 2\n')
    steps, reader = read(path)
    assert (steps, reader.problems.torn, reader.problems.total) == ([1], False, 1)


def test_a_binary_file_is_clearly_none(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(range(256)) * 500)
    steps, reader = read(path)
    assert steps == [] and reader.problems.total == 501 and len(reader.problems.skipped) == 100
    assert reader.summary().startswith(f"{path} has no event and may not be an event log: 501 lines skipped (line 1: ")


def test_each_pass_counts_anew(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"step": 1}\nbad\n')
    reader = EventReader(path)
    for _ in range(2):
        assert [event.step for event in reader] == [1]
        assert (reader.events, reader.problems.total) == (1, 1)


def test_what_cannot_be_read_is_refused_at_once(tmp_path):
    with pytest.raises(ReadError, match=r"missing\.jsonl does not exist"):
        EventReader(tmp_path / "missing.jsonl")
    with pytest.raises(ReadError, match="is a folder"):
        EventReader(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReadError, match="Not a directory"):
        EventReader(tmp_path / "file" / "events.jsonl")
    with pytest.raises(ReadError, match="null"):
        EventReader("with\0nul")


AS_NOBODY = """
import json, os, sys
from rldk.core.errors import ReadError
from rldk.log import EventReader
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    EventReader(sys.argv[1])
except ReadError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
@pytest.mark.parametrize("closed", ["the file", "its folder"])
def test_a_file_that_this_user_may_not_read(run_script, closed):
    folder = Path(tempfile.mkdtemp())  # pytest's own is closed to other users
    try:
        path = folder / "events.jsonl"
        path.write_text("")
        path.chmod(0 if closed == "the file" else 0o644)
        folder.chmod(0o755 if closed == "the file" else 0)
        assert f"{path} may not be read by this user" in run_script(AS_NOBODY, path)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_two_hundred_thousand_keys_in_one_event(tmp_path):
    path = tmp_path / "events.jsonl"
    metrics = {f"k{n}": 1.0 for n in range(200_000)}
    with EventWriter(path) as writer:
        assert writer.write(Event(1, metrics))
        assert writer.write(Event(2))
    first, second = EventReader(path)
    assert first.metrics == metrics and second.step == 2


@pytest.mark.parametrize("depth", [100, 900, 1000, 1020, 5000, 500_000])
@pytest.mark.parametrize("shape", ["%s", '{"step": %s}', '{"step": 2, "metrics": %s}', '{"step": 2, "notes": [%s]}'])
def test_deep_nesting_is_at_worst_a_bad_line(tmp_path, depth, shape):
    path = tmp_path / "events.jsonl"
    deep = shape.replace("%s", "[" * depth + "]" * depth)
    path.write_text(f'{{"step": 1}}\n{deep}\n{{"step": 3}}\n')
    steps, reader = read(path)
    assert [step for step in steps if step != 2] == [1, 3]
    assert len(steps) + reader.problems.total == 3


LONG_LINES = """
import gzip, json, re, sys, tempfile
import zstandard
from rldk.core.event import Event
from rldk.log import EventReader, LogTail

folder, kind = sys.argv[1:]
path = f"{folder}/events.jsonl"
opened = {"plain": lambda: open(path, "wb"), "gzip": lambda: gzip.open(path, "wb", 1),
          "zstd": lambda: zstandard.open(path, "wb"), "follow": lambda: open(path, "wb")}[kind]
with opened() as file:
    file.write(b'{"step": 1}\\n{"step": 2, "notes": ["')
    for _ in range(100):
        file.write(b"x" * 1_000_000)
    file.write(b'"]}\\n{"step": 3}\\n')
    for _ in range(100):
        file.write(b"\\0" * 1_000_000)
def tail_events(tail):
    while not tail.caught_up:
        yield from tail.read_new()

source = LogTail(path) if kind == "follow" else EventReader(path)
steps = [event.step for event in (tail_events(source) if kind == "follow" else source)]
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([steps, [line for line, _ in source.problems.skipped], peak]))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see the peak of memory")
@pytest.mark.parametrize("kind", ["plain", "gzip", "zstd", "follow"])
def test_lines_of_100_megabytes_do_not_show_in_memory(tmp_path, run_script, kind):
    steps, skipped, peak = run_script(LONG_LINES, tmp_path, kind)
    assert steps == [1, 3]
    assert skipped == ([2] if kind == "follow" else [2, 4])
    assert peak < 150, f"{peak:.0f} MB"


def test_a_line_within_the_limit_of_the_caller_is_read(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(json.dumps({"step": 1, "notes": ["x" * 100]}).encode() + b"\n" + b'{"step": 2}\n')
    assert [event.step for event in EventReader(path, max_line_bytes=1000)] == [1, 2]
    reader = EventReader(path, max_line_bytes=100)
    assert [event.step for event in reader] == [2]
    assert reader.problems.skipped == [(1, "longer than 100 bytes")]
