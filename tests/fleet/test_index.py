"""`rldk index` and `rldk runs`: a table of verdicts that is right after every change, and questions to it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main
from rldk.core.errors import ReadError, UsageError
from rldk.fleet.index import index_path, read_index, update_index
from rldk.fleet.query import ask, find_runs
from rldk.fleet.work import Reading
from rldk.judge.config import ScanConfig

from .conftest import write_run

pytestmark = pytest.mark.full
Capture = pytest.CaptureFixture[str]


def update(store: Path, **options: Any) -> tuple[int, int, int]:
    _, done = update_index(store, options.pop("reading", Reading()), jobs=1, **options)
    return done.judged, done.unchanged, done.gone


def names(store: Path, where: str = "", **options: Any) -> list[str]:
    return [row["name"] for row in find_runs(read_index(index_path(store)), where, **options)]


def test_only_what_has_changed_is_judged_again(store: Path) -> None:
    assert update(store) == (6, 0, 0)
    before = index_path(store).stat().st_mtime_ns
    assert update(store) == (0, 6, 0)
    assert index_path(store).stat().st_mtime_ns == before, "nothing to write"
    write_run(store / "c.jsonl", "entropy_explosion", seed=5)
    write_run(store / "e.jsonl", seed=6)
    (store / "<b>d.jsonl").unlink()
    assert update(store) == (2, 4, 1)
    assert names(store) == ["b/run", "c", "a/run", "e"]


def test_the_same_size_at_another_time_is_a_change(store: Path) -> None:
    update(store)
    os.utime(store / "c.jsonl", ns=(1, 1))
    assert update(store) == (1, 5, 0)


def test_the_table_after_changes_is_the_one_made_at_once(store: Path, tmp_path: Path) -> None:
    update(store)
    write_run(store / "c.jsonl", "entropy_explosion", seed=5)
    update(store)
    update(store, path=tmp_path / "fresh.parquet")
    assert read_index(index_path(store)).rows() == read_index(tmp_path / "fresh.parquet").rows()


def test_the_table_of_two_processes_is_that_of_one(store: Path, tmp_path: Path) -> None:
    one, _ = update_index(store, Reading(), jobs=1, path=tmp_path / "one")
    two, done = update_index(store, Reading(), jobs=2, path=tmp_path / "two")
    assert one.rows() == two.rows() and done.judged == 6


def test_other_settings_judge_everything_again(store: Path) -> None:
    update(store)
    assert update(store, reading=Reading(ScanConfig(sensitivity="high"))) == (6, 0, 0)


def test_a_row_says_what_a_table_of_runs_shows(store: Path) -> None:
    update(store)
    (row,) = find_runs(read_index(index_path(store)), "verdict = 'critical'")
    assert (row["name"], row["run_id"], row["events"], row["last_step"]) == ("b/run", "run", 120, 120)
    assert row["cause_title"] and row["anomalies"] and row["onset_step"] > 40 and row["coverage"] in ("full", "partial", "weak")
    assert 0 < row["lost_share"] < 1 and 0 < len(row["reward_curve"]) <= 32
    assert row["config.learning_rate"] == 3e-5 and row["config.kl_coef"] == 0.0
    assert row["path"] == str(store / "b" / "run.jsonl")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("verdict='critical' and config.lr>1e-5", ["b/run"]),
        ("config.learning_rate < 1e-5", ["a/run"]),
        ("config.beta = 0.04", ["a/run"]),
        ("name = 'config.lr'", []),
        ("name like '<b>%'", ["<b>d"]),
        ("list_contains(anomalies, 'entropy_explosion')", ["b/run"]),
    ],
)
def test_questions(store: Path, where: str, expected: list[str]) -> None:
    update(store)
    assert names(store, where) == expected


def test_files_without_a_run_are_remembered_but_not_listed(store: Path) -> None:
    _, done = update_index(store, Reading(), jobs=1)
    assert [Path(path).name for path, _ in done.unread] == ["noise.bin", "settings.json"]
    assert len(names(store)) == 4


def test_a_checkpoint_with_the_beginning_of_a_run_is_no_run(store: Path) -> None:
    lines = (store / "c.jsonl").read_bytes().splitlines(keepends=True)
    (store / "checkpoint.jsonl").write_bytes(b"".join(lines[:60]))
    update(store)
    assert "checkpoint" not in names(store)
    assert ask(read_index(index_path(store)), "select part_of from runs where path like '%/checkpoint.jsonl'") == [
        {"part_of": str(store / "c.jsonl")}
    ]
    assert update(store) == (0, 7, 0)
    write_run(store / "c.jsonl", seed=9)
    update(store)
    assert len(names(store)) == 5, "it is the beginning of nothing any more"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("verdikt = 'critical'", "verdikt"),
        ("config.lerning_rate > 0", "Did you mean learning_rate"),
        ("name in (select content from read_text('/etc/hostname'))", "disabled by configuration"),
        ("true); drop view runs; select (true", "cannot be used"),
    ],
)
def test_a_wrong_question_is_an_error_that_says_what_to_do(store: Path, where: str, message: str) -> None:
    update(store)
    with pytest.raises(UsageError, match=message):
        names(store, where)


def test_no_index_is_an_error_that_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="rldk index"):
        read_index(index_path(tmp_path))


def test_a_broken_index_is_made_again(store: Path) -> None:
    update(store)
    index_path(store).write_bytes(b"PAR1 no")
    with pytest.raises(ReadError, match="remove it"):
        read_index(index_path(store))
    assert update(store) == (6, 0, 0)


def test_an_error_while_writing_leaves_the_old_index(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update(store)
    before = index_path(store).read_bytes()
    write_run(store / "e.jsonl", seed=6)

    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full_disk)
    with pytest.raises(OSError, match="no space"):
        update(store)
    assert index_path(store).read_bytes() == before
    assert [path.name for path in index_path(store).parent.iterdir()] == ["index.parquet"]


def test_the_commands(store: Path, capsys: Capture) -> None:
    assert main(["index", str(store)]) == 0
    assert "4 runs: 1 critical, 3 healthy" in capsys.readouterr().out
    assert main(["index", str(store), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["judged"], answer["unchanged"], answer["verdicts"]) == (0, 6, {"critical": 1, "healthy": 3})
    assert main(["runs", str(store), "--where", "verdict='critical'"]) == 0
    out = capsys.readouterr().out
    assert "b/run" in out and "c.jsonl" not in out and "1 run" in out
    assert main(["runs", str(store), "--json", "--sort", "name", "--limit", "2"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["runs"]] == ["<b>d", "a/run"]
