"""`R_checkpoint_summary.csv`: one row a checkpoint, whole or not there."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rldk.checkpoints import (
    CheckpointHistory,
    CheckpointReport,
    add_to_summary,
    find_checkpoints,
    scan_checkpoints,
    write_summary,
)
from rldk.checkpoints.report import COLUMNS
from rldk.core.errors import LogWriteError
from rldk.testing.checkpoints import write_course


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def reports(tmp_path: Path) -> list[CheckpointReport]:
    write_course(tmp_path / "run", 4)
    return list(scan_checkpoints(find_checkpoints(tmp_path / "run")))


def test_one_row_a_checkpoint_with_every_digit(tmp_path: Path, reports: list[CheckpointReport]) -> None:
    written = rows(write_summary(tmp_path / "s.csv", reports))
    assert [row["step"] for row in written] == ["10", "20", "30", "40"] and list(written[0]) == list(COLUMNS)
    for row, report in zip(written, reports, strict=True):
        assert float(row["norm"]) == report.norm and row["verdict"] == "healthy"
    assert written[0]["update_ratio"] == "" and float(written[1]["update_ratio"]) == reports[1].update_ratio


def test_rows_added_one_by_one_are_the_same_file(tmp_path: Path, reports: list[CheckpointReport]) -> None:
    for report in reports:
        add_to_summary(tmp_path / "new/folder/a.csv", report)
    write_summary(tmp_path / "b.csv", reports)
    assert (tmp_path / "new/folder/a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert sorted(path.name for path in (tmp_path / "new/folder").iterdir()) == ["a.csv"]


def test_a_run_taken_up_again_further_back_loses_its_later_rows(tmp_path: Path, reports: list[CheckpointReport]) -> None:
    path = write_summary(tmp_path / "s.csv", reports)
    add_to_summary(path, reports[1])
    assert [row["step"] for row in rows(path)] == ["10", "20"]


@pytest.mark.parametrize("before", [b"", b"nonsense\n1,2,3\n", b"checkpoint,step\nx\n", b"\xff\xfe\x00"])
def test_a_file_that_was_something_else(tmp_path: Path, reports: list[CheckpointReport], before: bytes) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(before)
    add_to_summary(path, reports[0])
    assert rows(path)[-1]["checkpoint"] == "checkpoint-10"


def test_a_place_that_cannot_be_written(tmp_path: Path, reports: list[CheckpointReport]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogWriteError, match="cannot be written"):
        write_summary(tmp_path / "file/s.csv", reports)


def test_an_unreadable_checkpoint_has_a_row_too(tmp_path: Path) -> None:
    with CheckpointHistory() as history:
        report = history.add(tmp_path / "checkpoint-7", 7)
    (row,) = rows(write_summary(tmp_path / "s.csv", [report]))
    assert (row["step"], row["verdict"], row["problems"], row["norm"]) == ("7", "critical", "unreadable_checkpoint", "")
