"""Which files of a folder are logs: by name, then by a look at the beginning of each."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from rldk.ingest import discovery, read_runs
from rldk.ingest.discovery import LogFinder, candidates, newest_first

ROWS = "".join(json.dumps({"step": step, "reward": 0.1 * step, "kl": 0.01, "loss": 1.0}) + "\n" for step in range(9))


def write(path: Path, text: str = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in candidates(folder)]


def test_candidates_come_in_the_order_of_the_paths(tmp_path: Path) -> None:
    for name in ("b/run.jsonl", "a/run.jsonl", "z.jsonl", "a.csv"):
        write(tmp_path / name)
    assert names(tmp_path) == ["a.csv", "z.jsonl", "a/run.jsonl", "b/run.jsonl"]


@pytest.mark.parametrize(
    "name", ["test_run.py", "README.md", "page.html", "train.sh", ".hidden.jsonl", "__pycache__/run.jsonl", ".git/run.jsonl"]
)
def test_source_files_pages_and_hidden_files_are_not_logs_even_if_they_quote_one(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert names(tmp_path) == [] == LogFinder(tmp_path).find()


def test_a_page_named_by_itself_is_read(tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", "| step | reward | kl |\n|---|---|---|\n| 1 | 0.5 | 0.1 |\n| 2 | 0.6 | 0.1 |\n")
    assert len(read_runs(page).runs[0]) == 2


def test_what_a_monitor_wrote_beside_its_log_is_not_another_log(tmp_path: Path) -> None:
    for name in ("r_events.jsonl", "r_metrics.csv", "r_samples.jsonl", "r_alerts.json", "alone_metrics.csv"):
        write(tmp_path / name)
    for name in ("r_tensorboard", "other_tensorboard"):
        write(tmp_path / name / "run.jsonl")
    assert names(tmp_path) == ["alone_metrics.csv", "r_events.jsonl", "other_tensorboard/run.jsonl"]


def test_the_settings_of_a_log_are_not_another_log(tmp_path: Path) -> None:
    for name in ("a/config.json", "a/run.jsonl", "b/one.jsonl", "b/one_config.yaml", "b/two.jsonl", "b/args.json"):
        write(tmp_path / name)
    write(tmp_path / "c/config.json")
    assert names(tmp_path) == ["a/run.jsonl", "b/args.json", "b/one.jsonl", "b/two.jsonl", "c/config.json"]


def test_an_archive_in_a_folder_is_reported_and_not_read_as_text(tmp_path: Path) -> None:
    log = write(tmp_path / "run.jsonl")
    with tarfile.open(tmp_path / "runs.tar.gz", "w:gz") as tar:
        tar.add(log, "other/run.jsonl")
    result = read_runs(tmp_path)
    assert [report.path for report in result.files] == [log]
    assert result.passed_over == [(tmp_path / "runs.tar.gz", "is an archive, which is not searched: name it to read it.")]


def test_a_scan_reads_the_logs_that_are_found(tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl")
    write(tmp_path / "deep/trajectory.json", json.dumps([json.loads(line) for line in ROWS.splitlines()]))
    write(tmp_path / "deep/train.txt", "".join(f"step {step}: loss 0.{step}1, reward 0.5\n" for step in range(1, 9)))
    write(tmp_path / "notes.txt", "Nothing was measured here.\n")
    write(tmp_path / "labels.json", '{"good": true}')
    found = LogFinder(tmp_path).find()
    assert [log.path for log in found] == [report.path for report in read_runs(tmp_path).files]
    assert [log.path.name for log in found] == ["run.jsonl", "train.txt", "trajectory.json"]


def test_the_newest_log_comes_first(tmp_path: Path) -> None:
    for age, name in ((30, "old"), (10, "new"), (20, "middle")):
        os.utime(write(tmp_path / f"{name}.jsonl"), (1e9 - age, 1e9 - age))
    logs = newest_first(LogFinder(tmp_path).find())
    assert [log.path.stem for log in logs] == ["new", "middle", "old"]
    assert logs[0].modified == 1e9 - 10 and logs[0].size == len(ROWS)


def test_a_file_that_has_not_changed_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    look = discovery._adapter_of
    monkeypatch.setattr(discovery, "_adapter_of", lambda path: opened.append(path.name) or look(path))
    one, two = write(tmp_path / "one.jsonl"), write(tmp_path / "two.jsonl")
    finder = LogFinder(tmp_path)
    finder.find()
    write(one, ROWS + ROWS)
    two.rename(tmp_path / "three.jsonl")
    assert [log.path.name for log in finder.find()] == ["one.jsonl", "three.jsonl"]
    assert opened == ["one.jsonl", "two.jsonl", "one.jsonl", "three.jsonl"]


def test_a_short_look_leaves_files_for_the_next(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl")
    finder = LogFinder(tmp_path)
    assert finder.find(seconds=-1.0) == [] and finder.pending == 1
    assert len(finder.find()) == 1 and finder.pending == 0


def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "good.jsonl")
    write(tmp_path / "bad/run.jsonl")
    real = os.scandir

    def scandir(path: object = ".") -> object:
        if str(path).endswith("bad"):
            raise OSError(5, "Input/output error", str(path))
        return real(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", scandir)
    skipped: list[tuple[Path, str]] = []
    assert [path.name for path in candidates(tmp_path, on_skipped=lambda *one: skipped.append(one))] == ["good.jsonl"]
    assert skipped == [(tmp_path / "bad", "cannot be read: Input/output error.")]
    finder = LogFinder(tmp_path)
    assert [log.path.name for log in finder.find()] == ["good.jsonl"] and finder.skipped == skipped


def test_what_a_search_leaves_out_by_its_name_is_not_reported(tmp_path: Path) -> None:
    for name in (".hidden.jsonl", "page.html", ".git"):
        (tmp_path / name).symlink_to("nowhere")
    skipped: list[tuple[Path, str]] = []
    assert list(candidates(tmp_path, on_skipped=lambda *one: skipped.append(one))) == [] == skipped
