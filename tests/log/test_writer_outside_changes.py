"""What happens to the file while it is written: nothing is acknowledged that a reader would not find."""

from __future__ import annotations

import copy
import logging
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.log import EventReader, EventWriter


def test_a_deleted_log_is_begun_again(tmp_path: Path, event: Any, steps: Any, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "deep" / "events.jsonl"
    with caplog.at_level(logging.WARNING, "rldk"), EventWriter(path) as writer:
        assert writer.write(event(0))
        path.unlink()
        assert writer.write(event(1)) and steps(path) == [1]
        shutil.rmtree(path.parent)
        assert writer.write(event(2)) and steps(path) == [2]
        path.unlink()
        assert writer.sync() and path.exists()
        assert writer.write(event(3))
    assert steps(path) == [3] and ["was deleted" in one.getMessage() for one in caplog.records] == [True] * 3


def test_a_second_writer_after_an_unlink_is_not_disturbed(tmp_path: Path, event: Any, steps: Any, caplog: Any) -> None:
    path = tmp_path / "events.jsonl"
    with caplog.at_level(logging.WARNING, "rldk"), EventWriter(path) as first:
        assert first.write(event(0))
        path.unlink()
        with EventWriter(path) as second:
            assert second.write(event(100))
            assert not first.write(event(1)) and not first.write(event(2)) and first.pending == 2
            assert second.write(event(101))
            assert steps(path) == [100, 101]
        assert first.write(event(3)), "the other writer has left"
    assert steps(path) == [100, 101, 1, 2, 3]
    assert sum("another writer" in one.getMessage() for one in caplog.records) == 1


OUTSIDE = st.sampled_from([b"", b"half a line", b"a line\n", b'{"step": 9', b"\n", b"\0\0\0", b'{"step": 50, "metrics": {}}\n'])
ACTIONS = st.sampled_from(["append", "cut", "delete", "write", "write"])
CHANGES = st.lists(st.tuples(ACTIONS, OUTSIDE, st.integers(0, 80)), max_size=25)


@settings(deadline=None, max_examples=60)
@given(CHANGES)
def test_every_acknowledged_event_that_nobody_removed_is_a_line_of_its_own(tmp_path_factory: Any, changes: Any) -> None:
    path = tmp_path_factory.mktemp("outside") / "events.jsonl"
    logging.disable(logging.CRITICAL)
    try:
        with EventWriter(path) as writer:
            for number, (what, data, amount) in enumerate(changes):
                if what == "append" and path.exists():
                    with path.open("ab") as file:
                        file.write(data)
                elif what == "cut" and path.exists():
                    with path.open("r+b") as file:
                        file.truncate(max(0, path.stat().st_size - amount))
                elif what == "delete":
                    path.unlink(missing_ok=True)
                else:
                    assert writer.write(Event(1000 + number))
                    lines = path.read_bytes().split(b"\n")
                    assert lines[-1] == b"" and lines[-2] == Event(1000 + number).to_json()
    finally:
        logging.disable(logging.NOTSET)


def test_an_event_that_a_reader_would_skip_is_not_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with EventWriter(path) as writer:
        assert writer.write(Event(1, {"loss": 1.0}, model_info={"run_id": "r"}, extra={"samples": ["x" * (17 << 20)]}))
        assert writer.write(Event(2, {"loss": 1.0}, data_slice={"deep": deep}))
        for step in ("x", 1.5, 2**63, None):
            with pytest.raises(UsageError, match="step"):
                writer.write(Event(step, {"loss": 1.0}))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="16 MiB"):
            writer.write(Event(3, {"k" * (17 << 20): 1.0}))
    reader = EventReader(path)
    found = list(reader)
    assert [one.step for one in found] == [1, 2] and reader.problems.total == 0
    assert found[0].run_id == "r" and found[0].metrics == {"loss": 1.0} and "left out: extra" in found[0].notes[0]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_writer_is_not_copied(how: Any, tmp_path: Path, event: Any, steps: Any) -> None:
    with EventWriter(tmp_path / "events.jsonl") as writer:
        with pytest.raises(TypeError, match="cannot be copied"):
            how(writer)
        assert writer.write(event(1))
    assert steps(tmp_path / "events.jsonl") == [1]
