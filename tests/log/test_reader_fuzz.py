"""Whatever is in the file, the reader gives every intact event, locates the rest and never raises."""

from __future__ import annotations

import json

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rldk.core.event import Event
from rldk.log import EventReader
from rldk.log.blocks import compression_of

numbers = st.one_of(st.floats(), st.integers(-(2**70), 2**70))
events = st.builds(
    Event,
    st.integers(-(2**63), 2**63 - 1),
    st.dictionaries(st.text(max_size=8), st.floats(), max_size=4),
    wall_time=st.one_of(st.none(), st.floats()),
    notes=st.lists(st.text(), max_size=2),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
likely = st.dictionaries(st.sampled_from(["step", "metrics", "notes", "rng", "wall_time", "x"]), values)
garbage = st.binary(max_size=60).map(lambda line: line.replace(b"\n", b""))


def means_something(content: bytes) -> bool:
    """Whether the first bytes say that the rest is to be read in another way."""
    return compression_of(content[:4]) is not None or content.startswith(b"\xef\xbb\xbf")


def is_event(line: bytes) -> bool:
    """By the standard parser alone."""
    try:
        row = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(row, dict) or not isinstance(row.get("metrics", {}), dict | None):
        return False
    step = row.get("step")
    if isinstance(step, bool):
        return False
    try:
        whole = step if isinstance(step, int) else int(float(step))
        return (isinstance(step, int) or float(step) == whole) and -(2**63) <= whole < 2**63
    except (TypeError, ValueError, OverflowError):
        return False


@settings(deadline=None)
@given(st.binary(max_size=3000))
def test_random_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "events.jsonl"
    path.write_bytes(content)
    reader = EventReader(path)
    found = list(reader)
    assert len(found) == reader.events
    assert all(1 <= line <= content.count(b"\n") + 1 for line, _ in reader.problems.skipped)


mixed = st.lists(st.one_of(events, garbage, likely, values), max_size=12)


@settings(deadline=None)
@given(mixed, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
@example([{"step": 2.0**63}, {"step": 2**63}, {"step": 2**63 - 1}, {"step": -(2**63)}, {"step": "1e19"}], b"\n", True)
def test_every_intact_event_is_found_and_everything_else_located(tmp_path_factory, given_lines, newline, ended):
    path = tmp_path_factory.mktemp("fuzz") / "events.jsonl"
    lines = []
    for item in given_lines:
        if isinstance(item, Event):
            lines.append(item.to_json())
        else:
            lines.append(item if isinstance(item, bytes) else json.dumps(item).encode())
    content = newline.join(lines) + (newline if ended else b"")
    assume(not means_something(content))
    path.write_bytes(content)
    reader = EventReader(path)
    found = [repr(event) for event in reader]
    assert found == [repr(Event.from_json(line.strip(b"\0"))) for line in lines if is_event(line.strip(b"\0"))]
    for item, line in zip(given_lines, lines, strict=True):
        if isinstance(item, Event):
            assert repr(item) in found, line
    bad = [n for n, line in enumerate(lines, 1) if line.strip() and not is_event(line.strip(b"\0"))]
    assert [line for line, _ in reader.problems.skipped] == bad


@settings(deadline=None)
@given(st.lists(events, min_size=1, max_size=6), st.data())
def test_a_mutation_costs_no_line_but_its_own(tmp_path_factory, given_events, data):
    path = tmp_path_factory.mktemp("fuzz") / "events.jsonl"
    lines = [event.to_json() for event in given_events]
    hit = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[hit]) - 1))
    mutated = lines[hit][:at] + data.draw(garbage) + lines[hit][at + data.draw(st.integers(0, 3)) :]
    content = b"".join(line + b"\n" for line in [*lines[:hit], mutated, *lines[hit + 1 :]])
    assume(not means_something(content))
    path.write_bytes(content)
    reader = EventReader(path)
    found = [repr(event) for event in reader]
    others = [repr(event) for n, event in enumerate(given_events) if n != hit]
    assert found[:hit] == others[:hit]
    assert found[len(found) - len(others[hit:]) :] == others[hit:]
    assert [line for line, _ in reader.problems.skipped] in ([], [hit + 1])
