"""The page sees the logs of its folder, and nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rldk.core.errors import ReadError
from rldk.dashboard.folder import Folder
from rldk.ingest import read_runs

EVENT = '{"step": 1, "metrics": {"reward_mean": 1.0}}\n{"step": 2, "metrics": {"reward_mean": 2.0}}\n'


def test_logs_are_those_of_a_scan_the_newest_first(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    state = '{"log_history": [{"step": 1, "loss": 0.5, "reward": 0.1}, {"step": 2, "loss": 0.4, "reward": 0.2}]}'
    contents = {
        "new_events.jsonl": EVENT, "sub/old_events.jsonl": EVENT.replace("1", "7"), "trainer_state.json": state,
        "new_metrics.csv": "step,loss\n1,2\n", "new_alerts.json": "[]", "new_final_report.json": "{}",
        "new_checkpoint_summary.csv": "step\n1\n", "train.py": "reward = 1", "README.md": EVENT,
        ".hidden.jsonl": EVENT, "empty_events.jsonl": "", "words.log": "just words\n",
    }  # fmt: skip
    for age, (name, content) in enumerate(contents.items()):
        (tmp_path / name).write_text(content)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    listing = Folder(tmp_path).list()
    assert [log.key for log in listing.logs] == ["new_events.jsonl", "sub/old_events.jsonl", "trainer_state.json"]
    assert [log.name for log in listing.logs] == ["new", "sub/old", "trainer_state.json"]
    assert {path.path.relative_to(tmp_path).as_posix() for path in read_runs(tmp_path).files} == {log.key for log in listing.logs}


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert "does not exist yet" in Folder(tmp_path / "later").list().problem


@pytest.mark.parametrize(
    "key", ["../secret.jsonl", "/etc/passwd", "a/../../secret.jsonl", "", "a\0b", "..", "//etc/passwd"]
)
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    (tmp_path / "runs" / "a").mkdir(parents=True)
    with pytest.raises(ReadError, match="no such run"):
        Folder(tmp_path / "runs").find(key)


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text(EVENT)
    runs = tmp_path / "runs"
    (runs / "deep").mkdir(parents=True)
    (runs / "inside.jsonl").write_text(EVENT)
    (runs / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (runs / "folder").symlink_to(tmp_path)
    (runs / "deep" / "own.jsonl").symlink_to(runs / "inside.jsonl")
    (runs / "inside_alerts.json").symlink_to(tmp_path / "secret.jsonl")
    folder = Folder(runs)
    listing = folder.list()
    assert {log.key for log in listing.logs} == {"inside.jsonl", "deep/own.jsonl"}
    assert listing.outside == 2
    for key in ("link.jsonl", "folder/secret.jsonl", "folder"):
        with pytest.raises(ReadError):
            folder.find(key)
    assert folder.beside("inside.jsonl", "_alerts.json") is None


def test_a_folder_that_is_one_log_may_hold_no_link_that_leads_out(tmp_path: Path) -> None:
    (tmp_path / "secret.tfevents").write_text("secret")
    board = tmp_path / "runs" / "board"
    board.mkdir(parents=True)
    folder = Folder(tmp_path / "runs")
    assert folder.find("board") == board
    (board / "events.out.tfevents.1").symlink_to(tmp_path / "secret.tfevents")
    with pytest.raises(ReadError):
        folder.find("board")


def test_a_link_within_the_folder_may_not_lead_to_a_link_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    board, other = tmp_path / "runs" / "board", tmp_path / "runs" / "other"
    board.mkdir(parents=True)
    other.mkdir()
    (board / "metrics").symlink_to(other)
    (other / "back").symlink_to(board)  # a circle
    folder = Folder(tmp_path / "runs")
    assert folder.find("board") == board
    (other / "loss").symlink_to(tmp_path / "secret")
    with pytest.raises(ReadError):
        folder.find("board")


def test_what_lies_beside_a_run_is_found(tmp_path: Path) -> None:
    (tmp_path / "r_events.jsonl").touch()
    (tmp_path / "r_alerts.json").touch()
    assert Folder(tmp_path).beside("r_events.jsonl", "_alerts.json") == tmp_path / "r_alerts.json"
    assert Folder(tmp_path).beside("r_events.jsonl", "_checkpoint_summary.csv") is None
