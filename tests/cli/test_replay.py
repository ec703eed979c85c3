"""`rldk replay`: where a run would have stopped, and what that would have saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main

Make = Callable[..., str]
Capture = pytest.CaptureFixture[str]


def replay(capsys: Capture, *arguments: str) -> Any:
    assert main(["replay", "--json", *arguments]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return json.loads(out)


def shown(capsys: Capture, *arguments: str) -> str:
    assert main(["replay", *arguments]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    return out


def test_where_it_would_have_stopped(make_log: Make, capsys: Capture) -> None:
    path = make_log("critical")
    answer = replay(capsys, path)
    assert answer["stop_on"] == "critical"
    (stop,) = answer["runs"]
    main(["scan", "--json", path])
    (judged,) = json.loads(capsys.readouterr().out)["runs"]
    assert {"step": stop["step"], "index": stop["index"]} == judged["would_stop"]
    assert (stop["run_id"], stop["events"], stop["stopped"], stop["severity"]) == ("critical", 250, True, "critical")
    assert stop["saved_share"] == pytest.approx((249 - stop["index"]) / 250)
    assert stop["saved_seconds"] > 0


def test_to_the_end(make_log: Make, capsys: Capture) -> None:
    assert replay(capsys, make_log("warning"))["runs"] == [{"run_id": "warning", "events": 80, "stopped": False}]
    assert shown(capsys, make_log("warning")) == "warning: would have run to its end (80 events).\n"


def test_stopping_on_warnings(make_log: Make, capsys: Capture) -> None:
    (stop,) = replay(capsys, make_log("warning"), "--stop-on", "warning")["runs"]
    assert (stop["step"], stop["index"], stop["type"], stop["severity"]) == (270, 27, "clip_saturation", "warning")
    assert stop["saved_share"] == pytest.approx(52 / 80)
    assert stop["saved_seconds"] == pytest.approx(52.0)
    said = shown(capsys, make_log("warning"), "--stop-on", "warning")
    assert said == (
        "warning: would have stopped at step 270 (event 28 of 80) on clip_saturation, saving 65% of the run (52 s). "
        "80% of the tokens are clipped.\n"
    )


def test_a_critical_stops_who_stops_on_warnings(make_log: Make, capsys: Capture) -> None:
    path = make_log("critical")
    (early,), (late,) = (replay(capsys, path, "--stop-on", how)["runs"] for how in ("warning", "critical"))
    assert early["index"] <= late["index"]


def test_a_log_without_times_saves_no_seconds(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"step": n, "metrics": {"reward": 0.5 + n % 3 / 10, "loss": 0.5}} for n in range(40)]
    for row in rows[20:24]:
        row["metrics"]["loss"] = float("nan")  # type: ignore[index]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (stop,) = replay(capsys, str(path))["runs"]
    assert (stop["index"], stop["type"], stop["saved_seconds"]) == (20, "nonfinite_metric", None)
    assert "saving 48% of the run. " in shown(capsys, str(path))


def test_several_runs(make_log: Make, capsys: Capture) -> None:
    answer = replay(capsys, make_log("healthy"), make_log("critical"))
    assert [(stop["run_id"], stop["stopped"]) for stop in answer["runs"]] == [("healthy", False), ("critical", True)]


def test_settings_count(make_log: Make, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "thresholds.yaml"
    config.write_text("limits: {clip_frac: {max: 0.5, severity: critical}}\n")
    (stop,) = replay(capsys, make_log("warning"), "--config", str(config))["runs"]
    assert (stop["index"], stop["type"]) == (23, "user_limit_exceeded")


def test_a_run_id_that_would_take_over_the_terminal(make_log: Make, capsys: Capture) -> None:
    said = shown(capsys, make_log("critical", run_id="\x1b[31mred[bold]x\nnext"))
    assert "\x1b" not in said and "red[bold]x next: would have stopped" in said


@pytest.mark.parametrize("arguments", [["nowhere.jsonl"], [], ["x", "--stop-on", "sometimes"]])
def test_wrong_usage(capsys: Capture, arguments: list[str]) -> None:
    assert main(["replay", *arguments]) == 2
    assert capsys.readouterr().err.startswith("rldk: error: ")


def test_what_was_not_replayed_is_said(make_log: Make, capsys: Capture, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert main(["replay", make_log("healthy"), str(empty)]) == 2
    assert f"not judged: {empty}: is empty." in capsys.readouterr().out.replace("\n", "")
    assert main(["replay", make_log("healthy"), str(empty), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["passed_over"] == [{"path": str(empty), "reason": "is empty."}]


def test_the_machine_stops_no_run(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "full.jsonl"
    rows = [{"step": step, "reward": 0.3 + 0.02 * (step % 3), "memory_usage": 0.5 if step < 30 else 0.99} for step in range(60)]
    log.write_text("\n".join(map(json.dumps, rows)))
    main(["scan", "--json", str(log)])
    assert json.loads(capsys.readouterr().out)["runs"][0]["machine"]
    assert replay(capsys, str(log), "--stop-on", "warning")["runs"] == [{"run_id": "full", "events": 60, "stopped": False}]
