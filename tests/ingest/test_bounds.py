"""Inputs that want more time or memory than any log needs: a limit that is hit is named, and what was read is judged."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest import read_runs
from rldk.ingest.formats import json_document, stores
from rldk.ingest.formats.free_text import KeyValueAdapter
from rldk.ingest.formats.notebook import tables_in
from rldk.log import lines
from rldk.log.problems import LineProblems
from rldk.runs import column_store


def read(path: Path, content: bytes) -> Any:
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    (run,) = read_runs(path).runs
    return run


def test_a_new_key_in_each_row_costs_no_more_than_the_keys_that_are_kept(tmp_path: Path) -> None:
    form = b'{"step": %d, "loss": 0.5, "reward": 0.25, "in": {"a": 1, "key_%d": 1}, "key_%d": 1}\n'
    rows = (form % (n, n, n) for n in range(9000))
    run = read(tmp_path / "log.jsonl", b"".join(rows))
    assert len(run) == 9000 and (run.columns["loss"].values == 0.5).all() and (run.columns["in/a"].values == 1.0).all()
    assert any("keys; at least" in note for note in run.notes) and len(run.columns) < 5000
    assert sum(1 for _ in run.events()) == 9000


def test_of_a_row_with_very_many_keys_the_first_and_those_that_place_it_are_kept(tmp_path: Path) -> None:
    keys = b", ".join(b'"k%d": 1' % n for n in range(column_store._MAX_WIDTH + 100))
    rows = b"".join(b'{"loss": 0.5, %s, "step": %d}\n' % (keys, n) for n in (3, 5, 8))
    run = read(tmp_path / "log.jsonl", rows)
    assert run.steps.tolist() == [3, 5, 8] and any("keys; at least" in note for note in run.notes)


def test_rows_that_do_not_fit_into_a_first_look_are_still_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.ingest.source.WIDE_HEAD_BYTES", 300 << 10)
    keys = b", ".join(b'"k%d": 1' % n for n in range(50_000))
    run = read(tmp_path / "log.jsonl", b"".join(b'{"step": %d, "loss": 0.5, %s}\n' % (n, keys) for n in (1, 2, 3)))
    assert run.steps.tolist() == [1, 2, 3] and (run.columns["loss"].values == 0.5).all()


def test_events_are_the_same_however_many_are_made_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"step": n, "loss": n / 7, **({"reward": 1.0} if n % 3 else {}), "notes": f"at {n}"} for n in range(60)]
    run = read(tmp_path / "log.jsonl", "\n".join(map(json.dumps, rows)).encode())
    whole = [event.to_dict() for event in run.events()]
    monkeypatch.setattr("rldk.runs.run._AT_ONCE", 7)
    assert [event.to_dict() for event in run.events()] == whole and whole[4]["notes"] == ["at 4"]


def test_lines_that_cannot_be_used_end_the_reading_at_some_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.ingest.adapter._MAX_SKIPPED", 1000)
    rows = b"".join(b'{"step": %d, "loss": 0.5, "reward": 0.1}\n' % n for n in range(300))
    run = read(tmp_path / "log.jsonl.gz", rows + b"a\n" * 5000 + rows)
    assert len(run) == 300 and any("more than 1,000 lines cannot be used" in note for note in run.notes)


def test_text_without_rows_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_QUIET_CONSOLE_LINES", 1000)
    rows = b"".join(b"step=%d loss=0.5 reward=0.1\n" % n for n in range(1, 31))
    path = tmp_path / "run.log"
    path.write_bytes(rows + b"nothing of use in this line\n" * 200_000 + rows)
    (report,) = read_runs(path).files
    assert len(report.runs[0]) == 30 and "no row came for very long before line" in report.problems.summary()


def test_of_a_console_with_endless_rows_the_first_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyValueAdapter, "max_rows", 2000)
    run = read(tmp_path / "run.log", b"".join(b"step=%d loss=0.5 reward=0.1\n" % n for n in range(20_000)))
    assert 2000 <= len(run) < 6000 and any("too large to be read as a whole" in note for note in run.notes)


def test_rows_of_which_no_two_are_alike_end_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.ingest.formats.number_lines._MAX_NEW_ROWS", 1500)
    names = ["".join(chr(97 + int(digit)) for digit in str(n)) for n in range(4000)]
    rows = [f"step={n} loss=0.5 reward=0.1 {name}x=1" for n, name in enumerate(names)]
    run = read(tmp_path / "run.log", "\n".join(rows).encode())
    assert 1490 <= len(run) <= 1500 and any("too large to be read as a whole" in note for note in run.notes)


def test_of_a_document_that_is_too_large_the_first_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.ingest.source._MAX_UNFOLDED", 100_000)
    monkeypatch.setattr(json_document, "_BEGINNING", 50_000)
    history = [{"step": n, "loss": 0.5, "reward": 0.1, "epoch": 0.5, "learning_rate": 1e-5} for n in range(3000)]
    run = read(tmp_path / "trainer_state.json", json.dumps({"log_history": history, "total_flos": 1}).encode())
    assert 500 < len(run) < 3000 and any("too large to be read as a whole" in note for note in run.notes)
    with pytest.raises(ReadError, match="too many values"):
        read(tmp_path / "lists.json", json.dumps({"step": [*range(60_000)], "loss": [0.5] * 60_000}).encode())


def test_of_long_cells_the_beginning_is_read(tmp_path: Path) -> None:
    rows = b"".join(b"%d,0.5,%s\n" % (n, b"y" * 100_000) for n in range(1, 6))
    run = read(tmp_path / "m.csv", b"step,loss,note\n" + rows + b"6,0.4,1,2,3\n7,0.4,z\n")
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 7] and run.columns["loss"].values.tolist() == [0.5] * 5 + [0.4]


def test_settings_that_take_long_to_read_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("learning_rate: 1.0e-05\nnames: [" + "a, " * 100_000 + "b]\n")
    run = read(tmp_path / "log.jsonl", b"".join(b'{"step": %d, "loss": 0.5}\n' % n for n in range(5)))
    assert not run.config
    (tmp_path / "config.yaml").write_text("learning_rate: 1.0e-05\n")
    assert read(tmp_path / "log.jsonl", (tmp_path / "log.jsonl").read_bytes()).config["learning_rate"] == 1e-5


def test_a_store_of_endless_keys_makes_rows_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_MAX_KEYS", 100)
    rows = list(stores.gather(((1, 0.0, f"key{n}", 0.5) for n in range(1000)), "a"))
    assert max(map(len, rows)) <= 101 and sum(len(row) - 3 for row in rows) == 1000 and {row["step"] for row in rows} == {1}


@pytest.mark.parametrize("filling", [b"\n" * (8 << 20), b"\0" * (8 << 20), b"x" * (8 << 20)])
def test_what_follows_long_after_the_last_json_line_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filling: bytes
) -> None:
    monkeypatch.setattr(lines, "_QUIET_BYTES", 4 << 20)
    rows = b"".join(b'{"step": %d, "loss": 0.5, "reward": 1.0}\n' % n for n in range(400))
    path = tmp_path / "log.jsonl"
    path.write_bytes(rows + filling + b"\n" + rows.replace(b"0.5", b"0.4"))
    found = read_runs(path)
    assert [len(run) for run in found.runs] == [400] and "no row came for very long" in str(found.files[0].problems.damage)
    monkeypatch.setattr(lines, "_QUIET_BYTES", 16 << 20)
    assert sum(len(run) for run in read_runs(path).runs) == 800  # the log goes on after it


def test_tables_of_pages_are_found_in_one_pass() -> None:
    page = "<TABLE class='a'><tr><th>Step</th><th>Loss</th></tr><tr><td><b>1</b></td><td>0.5</td></tr><tr><td>2</td><td>0.4"
    assert list(tables_in(page + "</table> <td>3</td>")) == [([["Step", "Loss"], ["1", "0.5"], ["2"]], True)]
    assert list(tables_in(page)) == [([["Step", "Loss"], ["1", "0.5"], ["2"]], False)]
    assert list(tables_in("<table>" + "<tr><td>" * 200_000)) == [([], False)]
    assert list(tables_in("<table" * 200_000 + "<" * 200_000)) == []


def test_a_small_file_that_unfolds_comes_in_small_blocks(tmp_path: Path) -> None:
    from rldk.log.blocks import BLOCK_BYTES, iter_blocks

    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n" * (8 << 20)))
    assert max(map(len, iter_blocks(tmp_path / "a.gz", LineProblems()))) <= BLOCK_BYTES
