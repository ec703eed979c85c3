"""A run with the id of an earlier one does not mix with it."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path

import pytest

from rldk.core.event import Event
from rldk.monitor import Monitor


def run(folder: Path, count: int, level: float, run_id: str = "mine", **options: object) -> None:
    with Monitor(folder, run_id, **options) as monitor:
        for step in range(1, count + 1):
            monitor.observe(Event(step, {"reward_mean": level}))


def rewards(folder: Path, run_id: str) -> tuple[list[float], list[float]]:
    events = [json.loads(line)["metrics"]["reward_mean"] for line in (folder / f"{run_id}_events.jsonl").read_text().splitlines()]
    with (folder / f"{run_id}_metrics.csv").open(newline="") as file:
        return events, [float(row["reward_mean"]) for row in csv.DictReader(file)]


def test_a_second_run_of_the_same_id_is_a_new_run_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, 3, 1.0)
    run(tmp_path, 2, 7.0, "mine_other")  # its files begin with the same letters, and are not touched
    with caplog.at_level(logging.WARNING, "rldk"):
        run(tmp_path, 2, 2.0)
        run(tmp_path, 4, 3.0)
    assert caplog.text.count("this is a new run") == 2 and "mine_1_*" in caplog.text and "mine_2_*" in caplog.text
    assert rewards(tmp_path, "mine_1") == ([1.0] * 3, [1.0] * 3)
    assert rewards(tmp_path, "mine_2") == ([2.0] * 2, [2.0] * 2)
    assert rewards(tmp_path, "mine") == ([3.0] * 4, [3.0] * 4)
    assert rewards(tmp_path, "mine_other") == ([7.0] * 2, [7.0] * 2)
    for run_id, events in (("mine_1", 3), ("mine_2", 2), ("mine", 4)):
        assert json.loads((tmp_path / f"{run_id}_final_report.json").read_text())["events"] == events


def test_all_that_is_known_to_lie_beside_a_log_is_set_aside_with_it(tmp_path: Path) -> None:
    run(tmp_path, 3, 1.0)
    beside = ("samples.jsonl", "checkpoint_summary.csv", "comprehensive_metrics.json", "comprehensive_analysis_step_5.json")
    for ending in beside:
        (tmp_path / f"mine_{ending}").touch()
    (tmp_path / "mine_tensorboard").mkdir()
    (tmp_path / "mine_notes.txt").touch()
    run(tmp_path, 2, 2.0)
    assert all((tmp_path / f"mine_1_{ending}").exists() for ending in (*beside, "tensorboard"))
    assert (tmp_path / "mine_notes.txt").exists()


def test_a_run_that_resumes_goes_on_in_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, 3, 1.0)
    with caplog.at_level(logging.WARNING, "rldk"), Monitor(tmp_path, "mine", resume_step=2) as monitor:
        monitor.observe(Event(3, {"reward_mean": 5.0}))
    assert rewards(tmp_path, "mine") == ([1.0, 1.0, 5.0], [1.0, 1.0, 5.0])
    assert "new run" not in caplog.text and not list(tmp_path.glob("mine_1_*"))


def test_a_log_of_ones_own_is_appended_to(tmp_path: Path) -> None:
    for level in (1.0, 2.0):
        run(tmp_path / "files", 2, level, event_log_path=tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert [json.loads(line)["metrics"]["reward_mean"] for line in lines] == [1.0, 1.0, 2.0, 2.0]
    assert (tmp_path / "files" / "mine_1_metrics.csv").is_file()
