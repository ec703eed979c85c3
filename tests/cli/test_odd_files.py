"""Logs whose names, keys, ids and numbers no terminal, page or table can hold as they are: every command gets through them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from rldk.cli.main import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8")

HUGE = "9" * 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three logs: one whose name is not UTF-8, one with halves of surrogate pairs, one with huge numbers; one more is sound."""
    runs = tmp_path_factory.mktemp("runs")
    rows = [json.dumps({"step": n, "reward": n / 10, "kl": 0.01, "loss": 0.5}) for n in range(30)]
    (runs / "sound.jsonl").write_text("\n".join(rows))
    for name, count in ((b"/\xff.jsonl", 20), (b"/\xfe.jsonl", 25)):  # they must not become one
        Path(os.fsdecode(os.fsencode(runs) + name)).write_text("\n".join(rows[:count]))
    (runs / "half_events.jsonl").write_text("".join(json.dumps({
        "step": n, "metrics": {"reward_mean": 0.1, "kl_mean": 0.02 * n, "\ud800": 1.0 * n}, "notes": ["\ud83d"],
        "model_info": {"run_id": "half\udfff", "config": {"raw": {"lr": 10**400, "\ud800": "\ud800"}, "knobs": {}}},
        "samples": [{"prompt": "\ud800", "completion": "b"}],
    }) + "\n" for n in range(30)))  # fmt: skip
    lines = [f'{{"step": {step}, "metrics": {{"reward_mean": {HUGE}, "kl_mean": 1e308}}}}' for step in (1, 2, 2**63, HUGE, 4)]
    (runs / "huge_events.jsonl").write_text("\n".join(lines))
    return runs


def test_scan_judges_all_of_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", str(folder), "--json", "--fail-on", "never"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {Path(run["path"]).name for run in found["runs"]} >= {"sound.jsonl", "half_events.jsonl", "huge_events.jsonl"}
    named = {Path(one["path"]).name for one in (*found["runs"], *found["passed_over"])}
    assert "\udcff.jsonl" in named and "\udcfe.jsonl" in named  # the same rows as the sound one, and said to be
    huge = next(run for run in found["runs"] if run["path"].endswith("huge_events.jsonl"))
    assert huge["events"] == 3 and huge["skipped_lines"] == 2
    for options in ([], ["--verbose"], ["--summary"]):
        assert main(["scan", str(folder), "--fail-on", "never", *options]) == 0
        assert "unexpected" not in capsys.readouterr().err


def test_a_page_is_written_of_all_of_them(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, summary = tmp_path / "page.html", tmp_path / "summary.md"
    assert main(["report", str(folder), "-o", str(page), "--markdown", str(summary), "--json"]) == 0
    assert {one["run_id"] for one in json.loads(capsys.readouterr().out)["runs"]} >= {"half?", "huge_events", "sound"}
    assert "half?" in page.read_text(encoding="utf-8") and "half?" in summary.read_text(encoding="utf-8")


def test_the_index_holds_each_once_and_is_up_to_date_afterwards(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    index = str(tmp_path / "index.parquet")
    assert main(["index", str(folder), "--index", index, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["judged"] == 5
    assert main(["index", str(folder), "--index", index, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unchanged"] == 5
    assert main(["runs", str(folder), "--index", index, "--json"]) == 0
    names = {row["run_id"] for row in json.loads(capsys.readouterr().out)["runs"]}
    assert {"half?", "huge_events", "sound"} <= names
    assert main(["runs", str(folder), "--index", index]) == 0
    assert "half?" in capsys.readouterr().out
