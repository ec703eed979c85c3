from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rldk.core.event import Event
from rldk.dashboard.folder import Folder
from rldk.dashboard.reader_process import RunReader
from rldk.testing.streams import faulty, healthy


def write(path: Path, events: list[Event], mode: str = "ab") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.writelines(event.to_json() + b"\n" for event in events)
    return path


def work_until(reader: RunReader, condition: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the reader did not get that far"
        if not reader.work():
            time.sleep(0.02)


def settle(reader: RunReader, key: str) -> dict[str, object]:
    """The state of a run once all of it is read and judged."""

    def done() -> bool:
        state = reader.state(key)
        rows = state.get("rows")
        return bool(state["problem"]) or (state["progress"] == 1.0 and rows is not None and rows == state["judged"])

    reader.state(key)
    work_until(reader, done)
    return reader.state(key)


@pytest.fixture
def reader(tmp_path: Path) -> RunReader:
    return RunReader(Folder(tmp_path))


@pytest.fixture(scope="session")
def healthy_events() -> list[Event]:
    return healthy("ppo", 300, 1)


@pytest.fixture(scope="session")
def sick_events() -> list[Event]:
    return faulty("kl_explosion", "ppo", 400, 150, 2)
