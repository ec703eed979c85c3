from __future__ import annotations

import gzip
import random

import pytest
import zstandard

from rldk.core.event import Event
from rldk.log import EventReader

COMPRESS = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor(write_checksum=True).compress}


def lines(first: int, count: int) -> bytes:
    noise = random.Random(first)
    steps = range(first, first + count)
    return b"".join(Event(step, {f"m{n}": noise.random() for n in range(20)}).to_json() + b"\n" for step in steps)


@pytest.fixture(params=sorted(COMPRESS))
def compress(request):
    return COMPRESS[request.param]


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz", "events.zst"])
def test_it_is_recognised_by_its_content(tmp_path, compress, name):
    path = tmp_path / name
    path.write_bytes(compress(lines(0, 3000)))
    reader = EventReader(path)
    assert [event.step for event in reader] == list(range(3000))
    assert reader.problems.damage is None and reader.summary() == ""


def test_a_plain_file_with_a_lying_name(tmp_path):
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(lines(0, 5))
    assert [event.step for event in EventReader(path)] == list(range(5))


def test_several_in_a_row_are_one(tmp_path, compress):
    path = tmp_path / "events"
    path.write_bytes(compress(lines(0, 10)) + compress(b"") + compress(lines(10, 10)))
    reader = EventReader(path)
    assert [event.step for event in reader] == list(range(20))
    assert reader.problems.damage is None


def test_padding_after_gzip_and_a_skippable_frame_before_zstd(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(gzip.compress(lines(0, 10)) + b"\0" * 512)
    reader = EventReader(path)
    assert [event.step for event in reader] == list(range(10)) and reader.problems.damage is None
    path.write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + COMPRESS["zstd"](lines(0, 10)))
    reader = EventReader(path)
    assert [event.step for event in reader] == list(range(10)) and reader.problems.damage is None


def test_one_that_was_cut_off_gives_what_can_be_had(tmp_path, compress):
    path = tmp_path / "events"
    whole = compress(lines(0, 3000))
    counts = []
    for cut in [*range(4, 40), len(whole) // 2, len(whole) - 9, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        reader = EventReader(path)
        steps = [event.step for event in reader]
        assert steps == list(range(len(steps)))
        assert reader.problems.damage is not None and "ends too early" in reader.problems.damage
        assert reader.problems.total <= 1
        assert "ends too early" in reader.summary()
        counts.append(len(steps))
    assert counts[0] == 0
    assert counts[-3] > 1000 and counts[-1] > 2500


def test_one_that_is_damaged_gives_what_is_before(tmp_path, compress):
    """And perhaps something after: zstd notices some damage only by the checksum at the end."""
    path = tmp_path / "events"
    whole = bytearray(compress(lines(0, 3000)))
    middle = len(whole) // 2
    whole[middle : middle + 50] = b"\xff" * 50
    path.write_bytes(whole)
    reader = EventReader(path)
    steps = [event.step for event in reader]
    assert steps[:1000] == list(range(1000))
    assert reader.problems.damage is not None and "damaged" in reader.problems.damage


def test_what_only_begins_like_compressed_data(tmp_path):
    path = tmp_path / "events"
    for head in (b"\x1f\x8b", b"\x28\xb5\x2f\xfd"):
        path.write_bytes(head + lines(0, 3))
        reader = EventReader(path)
        assert list(reader) == []
        assert reader.problems.damage is not None
