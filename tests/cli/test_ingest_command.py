"""`rldk ingest`: what was read, what was skipped, which key went where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main
from rldk.ingest import ingest_runs


def write(path: Path, rows: list[Any]) -> str:
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return str(path)


def rows(steps: int = 40, **more: Any) -> list[Any]:
    return [{"step": n, "metrics": {"reward": 0.1 * n, "kl": 0.01, "my_own": n, **more},
    "model_info": {"run_id": "mine"}} for n in range(steps)]


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["ingest", *arguments]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out


def test_a_summary_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, write(tmp_path / "log.jsonl", [*rows(), b"{torn", b"[]"]))
    assert "mine" in said and " 40 " in said and "0–39" in said and " rl " in said
    assert "line 41 skipped: not JSON" in said and "line 42 skipped" in said
    assert "unrecognised keys: my_own" in said and "--field-map" in said
    assert "reward_mean" in said and "0 → 3.9" in said and "▁" in said


def test_the_account_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.jsonl", [*rows(), b"{torn"])
    account = json.loads(shown(capsys, path, "--json"))
    assert set(account) == {"files", "runs", "passed_over", "output"}
    (file,), (run,) = account["files"], account["runs"]
    assert set(file) == {"path", "adapter", "why", "framework", "skipped_lines", "skipped", "damage"}
    assert (file["path"], file["adapter"], file["skipped_lines"], file["skipped"][0]["line"]) == (path, "rldk", 1, 41)
    assert set(run) == {
        "run_id", "path", "adapter", "framework", "kind", "rows", "first_step", "last_step", "metrics", "reductions",
        "duplicates", "unmapped", "not_judged", "notes",
    }  # fmt: skip
    assert (run["run_id"], run["kind"], run["rows"], run["first_step"], run["last_step"]) == ("mine", "rl", 40, 0, 39)
    assert run["metrics"] == {"reward_mean": "reward", "kl_mean": "kl"} and run["unmapped"] == ["my_own"]
    assert run["reductions"]["kl_mean"] == "unstated" and account["output"] is None and account["passed_over"] == []


def test_a_folder_and_what_was_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a.jsonl", rows(5))
    (tmp_path / "readme.txt").write_text("words\n")
    account = json.loads(shown(capsys, str(tmp_path), "--json"))
    assert [Path(entry["path"]).name for entry in account["passed_over"]] == ["readme.txt"]
    assert "readme.txt: not read:" in shown(capsys, str(tmp_path))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", pytest.param(".parquet", marks=pytest.mark.full)])
def test_rows_are_written(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path / "log.jsonl", rows()), tmp_path / f"out{suffix}"
    said = shown(capsys, path, "-o", str(out))
    assert f"wrote 40 rows to {out}" in said.replace("\n", "")
    assert ingest_runs(out)["reward_mean"].tolist() == ingest_runs(path)["reward_mean"].tolist()
    assert json.loads(shown(capsys, path, "--json", "-o", str(out)))["output"] == str(out)


def test_field_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.jsonl", rows())
    account = json.loads(shown(capsys, path, "--field-map", "my_own=grad_norm", "--field-map", "kl=kl_update", "--json"))
    assert account["runs"][0]["metrics"] == {"reward_mean": "reward", "kl_update": "kl", "grad_norm": "my_own"}
    assert account["runs"][0]["unmapped"] == []


def test_a_field_map_to_no_metric_is_refused_with_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", write(tmp_path / "log.jsonl", rows()), "--field-map", "my_own=kl_men"]) == 2
    assert "Did you mean kl_mean" in capsys.readouterr().err


def test_explain_tells_which_adapter_and_which_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.jsonl", [{**row, "metrics": {**row["metrics"], "kl_mean": 0.5,
    "eval_loss": 1.0}} for row in rows()])
    said = shown(capsys, path, "--explain")
    assert "read by the adapter 'rldk': lines with `step` and `metrics`" in said.replace("\n", "")
    lines = [line.split() for line in said.splitlines()]
    assert ["reward", "reward_mean", "reward", "sequence"] in lines and ["kl_mean", "kl_mean", "nats", "unstated"] in lines
    assert ["eval_loss", "eval_loss", "1", "batch"] in lines
    assert ["kl", "(another", "kl_mean)"] in lines and ["my_own", "–"] in lines
    assert "read by the adapter" not in shown(capsys, path)


def test_an_adapter_may_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.jsonl", rows())
    assert json.loads(shown(capsys, path, "--adapter", "trl", "--json"))["files"][0]["adapter"] == "trl"
    assert main(["ingest", path, "--adapter", "nonsense"]) == 2
    assert "Unknown adapter" in capsys.readouterr().err


def test_an_adapter_that_cannot_read_a_log_gives_way_to_the_flexible_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "log.jsonl", rows())
    assert json.loads(shown(capsys, path, "--adapter", "verl", "--json"))["files"][0]["adapter"] == "flexible"
    assert "cannot be read by the adapter 'verl'" in caplog.text and "--field-map" in caplog.text


def test_a_log_of_supervised_training_is_said_to_be_one_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.jsonl", [{"step": n, "metrics": {"loss": 1.0, "lr": 0.1}} for n in range(5)])
    assert shown(capsys, path).count("supervised training") == 1


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "[bold]loud[/bold]",
    "[/nothing]",
    "a\nb",
    "\x9b31m",
    ":smile:",
    "x" * 5000,
    "\u202eright",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = [
        {"step": n, "metrics": {"reward": 0.1, text: 1.0}, "model_info": {"run_id": text}, "notes": [text]} for n in range(5)
    ]
    path = write(tmp_path / "log.jsonl", [*hostile, text.encode(errors="replace")])
    said = shown(capsys, path, "--explain")
    assert not any(control in said for control in ("\x1b", "\x07", "\x9b", "\u202e"))
    assert len(said) < 20_000
    if "[" in text and "\x1b" not in text:
        assert text in said.replace("\n", "")
    account = json.loads(shown(capsys, path, "--json"))
    assert account["runs"][0]["run_id"] == text[:4096] and text in account["runs"][0]["unmapped"]


def test_numbers_of_any_size_can_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [1e308, -1e308, float("nan"), float("inf"), 0.0, 5e-324] * 40
    path = write(tmp_path / "log.jsonl", [{"step": n, "metrics": {"reward": value,
    "loss": 1e308}} for n, value in enumerate(values)])
    assert "reward_mean" in shown(capsys, path)


def test_several_runs_are_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "log.jsonl", [{"step": n // 2, "loss": 1.0, "reward": 1.0, "run_id": "ab"[n % 2]} for n in range(10)])
    said = shown(capsys, path)
    assert [line.split()[0] for line in said.splitlines() if " 0–4 " in line] == ["a", "b"]
    assert "→" not in said
