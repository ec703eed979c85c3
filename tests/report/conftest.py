"""Runs and pages for the tests of the report, and a browser to open them in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.judge.scan import judge_run
from rldk.report import Case
from rldk.testing.streams import faulty, healthy

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


def write_log(path: Path, events: list[Event], run_id: str = "") -> Path:
    for event in events:
        event.model_info["run_id"] = run_id or path.stem.removesuffix("_events")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return path


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a healthy run and a broken one."""
    folder = tmp_path_factory.mktemp("logs")
    write_log(folder / "healthy_events.jsonl", healthy("ppo", steps=200, seed=3))
    write_log(folder / "broken_events.jsonl", faulty("entropy_explosion", "ppo", steps=300, onset=150, seed=3))
    return folder


@pytest.fixture(scope="session")
def case_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Case]:
    """The case of a run with these events."""

    def make(events: list[Event], run_id: str = "run") -> Case:
        path = write_log(tmp_path_factory.mktemp("case") / "run_events.jsonl", events, run_id)
        return Case(judge_run(read_runs(path).runs[0]))

    return make


@pytest.fixture(scope="session")
def cases(logs: Path) -> dict[str, Case]:
    """`healthy` and `broken`."""
    return {run.run_id: Case(judge_run(run)) for run in read_runs(logs).runs}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield opened
        opened.close()
