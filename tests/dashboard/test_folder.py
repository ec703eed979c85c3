"""Runs are found by name, and nothing outside of the folder can be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rldk.core.errors import ReadError
from rldk.dashboard.folder import Folder


def test_runs_are_listed_the_latest_first_and_their_companions_are_not(tmp_path: Path) -> None:
    for age, name in enumerate(["new_events.jsonl", "sub/old_events.jsonl", "trainer_state.json", "verl.log"]):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (1000 - age, 1000 - age))
    for name in ("new_metrics.csv", "new_alerts.json", "new_final_report.json", "new_checkpoint_summary.csv",
                 "new_comprehensive_analysis_step_10.json", "config.json", "model.safetensors", ".hidden.jsonl"):  # fmt: skip
        (tmp_path / name).touch()
    listing = Folder(tmp_path).list()
    assert [file.key for file in listing.files] == ["new_events.jsonl", "sub/old_events.jsonl", "trainer_state.json", "verl.log"]
    assert [file.name for file in listing.files] == ["new", "sub/old", "trainer_state.json", "verl.log"]
    assert [file.is_followed for file in listing.files] == [True, True, False, False]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert "does not exist yet" in Folder(tmp_path / "later").list().problem


@pytest.mark.parametrize(
    "key", ["../secret.jsonl", "/etc/passwd", "a/../../secret.jsonl", "", ".", "a\0b", "..", "//etc/passwd"]
)
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    (tmp_path / "runs" / "a").mkdir(parents=True)
    with pytest.raises(ReadError, match="no such run"):
        Folder(tmp_path / "runs").find(key)


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    runs = tmp_path / "runs"
    (runs / "deep").mkdir(parents=True)
    (runs / "inside.jsonl").touch()
    (runs / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (runs / "folder").symlink_to(tmp_path)
    (runs / "deep" / "own.jsonl").symlink_to(runs / "inside.jsonl")
    (runs / "inside_alerts.json").symlink_to(tmp_path / "secret.jsonl")
    folder = Folder(runs)
    listing = folder.list()
    assert {file.key for file in listing.files} == {"inside.jsonl", "deep/own.jsonl"}
    assert listing.led_out == 1
    for key in ("link.jsonl", "folder/secret.jsonl"):
        with pytest.raises(ReadError):
            folder.find(key)
    assert folder.beside("inside.jsonl", "_alerts.json") is None


def test_what_lies_beside_a_run_is_found(tmp_path: Path) -> None:
    (tmp_path / "r_events.jsonl").touch()
    (tmp_path / "r_alerts.json").touch()
    assert Folder(tmp_path).beside("r_events.jsonl", "_alerts.json") == tmp_path / "r_alerts.json"
    assert Folder(tmp_path).beside("r_events.jsonl", "_checkpoint_summary.csv") is None
