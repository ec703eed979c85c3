"""Work in real processes: answers as they are ready, and a process that dies costs one task at most."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from rldk.core.errors import ReadError, RLDKError
from rldk.fleet.pool import WorkError, available_cores, run_in_processes


def square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def fragile(folder: Path, number: int) -> int:
    """Kills its process for 3 always, and for 5 the first time."""
    first = folder / str(number)
    if number == 3 or (number == 5 and not first.exists()):
        first.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 7:
        raise ReadError("seven cannot be read")
    if number == 8:
        raise ValueError("eight is a bug")
    return number * number


def patient(folder: Path, number: int) -> int:
    """The first task waits until the answer of the second, which another process has, was taken."""
    while number == 0 and not (folder / "1").exists():
        time.sleep(0.005)
    return number


def test_every_task_is_answered_once_by_other_processes() -> None:
    answers = dict(run_in_processes(square, range(20), 2))
    assert {number: answer[0] for number, answer in answers.items()} == {number: number * number for number in range(20)}
    workers = {answer[1] for answer in answers.values()}
    assert os.getpid() not in workers and len(workers) <= 2


def test_a_task_that_kills_its_process_is_reported_and_the_others_are_answered(tmp_path: Path) -> None:
    answers = dict(run_in_processes(partial(fragile, tmp_path), range(10), 2))
    assert sorted(answers) == list(range(10))
    good = {number: answer for number, answer in answers.items() if not isinstance(answer, RLDKError)}
    assert good == {number: number * number for number in (0, 1, 2, 4, 5, 6, 9)}, "5 was tried again"
    assert isinstance(answers[3], WorkError) and "SIGKILL" in str(answers[3]) and "memory" in str(answers[3])
    assert str(answers[7]) == "seven cannot be read"
    assert isinstance(answers[8], WorkError) and "ValueError: eight is a bug" in str(answers[8])


def test_answers_come_as_they_are_ready(tmp_path: Path) -> None:
    order = []
    for number, _ in run_in_processes(partial(patient, tmp_path), range(4), 2):
        order.append(number)
        (tmp_path / str(number)).touch()
    assert sorted(order) == [0, 1, 2, 3]
    assert order.index(1) < order.index(0), "the second did not wait for the first"


def test_no_process_outlives_the_work() -> None:
    work = run_in_processes(square, range(1000), 2)
    _, answer = next(work)
    assert not isinstance(answer, RLDKError)
    assert psutil.pid_exists(answer[1])
    work.close()
    for _ in range(500):
        if not psutil.pid_exists(answer[1]):
            return
        time.sleep(0.01)
    pytest.fail("the worker is still there")


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 16), ({"cpu.max": "max 100000"}, 16), ({"cpu.max": "200000 100000"}, 2), ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "9900000 100000"}, 16), ({"cpu.max": "?"}, 16),
        ({"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 16),
    ],
)  # fmt: skip
def test_the_limit_of_a_container_is_kept(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(16), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert available_cores(tmp_path) == cores
