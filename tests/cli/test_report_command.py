"""`rldk report`: files where they were asked for, runs that cannot be read listed, and a status that scripts can use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rldk.cli.main import main
from rldk.core.event import Event


def test_a_page_is_written_and_the_verdict_told(
    make_log: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "deep" / "page.html"
    assert main(["report", make_log("critical"), "-o", str(target)]) == 0
    said = capsys.readouterr().out
    assert "critical  critical:" in said and f"wrote {target}" in said.replace("\n", "")
    content = target.read_text()
    assert content.startswith("<!DOCTYPE html>") and "The policy has degenerated" in content


def test_the_page_judges_as_a_scan_does(make_log: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log("critical")
    main(["scan", log, "--json"])
    scanned = json.loads(capsys.readouterr().out)["runs"][0]
    main(["report", log, "-o", str(tmp_path / "r.html"), "--json"])
    assert json.loads(capsys.readouterr().out)["runs"] == [{"run_id": scanned["run_id"], "verdict": scanned["verdict"]}]
    content = (tmp_path / "r.html").read_text()
    for anomaly in scanned["anomalies"]:
        assert anomaly["message"].replace("'", "&#x27;") in content


@pytest.mark.parametrize(("fail_on", "status"), [("never", 0), ("critical", 1), ("warning", 1)])
def test_the_status_fails_only_where_it_was_asked_to(
    make_log: Callable[..., str], tmp_path: Path, fail_on: str, status: int
) -> None:
    assert main(["report", make_log("critical"), "-o", str(tmp_path / "r.html"), "--fail-on", fail_on]) == status


def test_what_cannot_be_read_is_on_the_page_and_stops_nothing_else(
    make_log: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    paths = [make_log("healthy"), str(tmp_path / "empty.jsonl"), str(tmp_path / "missing.jsonl"), make_log("warning")]
    assert main(["report", *paths, "-o", str(tmp_path / "r.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {run["verdict"] for run in told["runs"]} == {"healthy", "warning"}
    assert [Path(one["path"]).name for one in told["passed_over"]] == ["empty.jsonl", "missing.jsonl"]
    content = (tmp_path / "r.html").read_text()
    assert "Not read" in content and "missing.jsonl" in content


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 500, b"just words\nand more\n", b"{"])
def test_nothing_to_read_is_a_page_that_helps_and_status_2(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.jsonl").write_bytes(content)
    assert main(["report", str(tmp_path / "log.jsonl"), "-o", str(tmp_path / "r.html")]) == 2
    assert "No run could be read" in (tmp_path / "r.html").read_text()


def test_the_path_is_said_once_of_what_is_not_judged(
    make_log: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, missing = tmp_path / "empty.jsonl", tmp_path / "missing.jsonl"
    empty.write_text("")
    for paths in ([str(empty)], [str(empty), str(missing)], [make_log("healthy"), str(empty), str(missing)]):
        main(["report", *paths, "-o", str(tmp_path / "r.html")])
        said = capsys.readouterr().out
        assert f"not judged: {empty}: is empty.\n" in said
        assert len(paths) == 1 or f"not judged: {missing}: does not exist.\n" in said


def test_an_empty_folder_is_a_page_that_helps(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "r.html")]) == 2
    assert "No run could be read" in (tmp_path / "r.html").read_text()


def test_wrong_usage_writes_nothing(make_log: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", make_log("healthy"), "-o", str(tmp_path / "r.html"), "--config", str(tmp_path / "none.yaml")]) == 2
    assert main(["report", make_log("healthy"), "-o", str(tmp_path)]) == 2
    assert "got the folder" in capsys.readouterr().err and not (tmp_path / "r.html").exists()


def test_a_target_of_the_settings_is_a_line_in_the_picture(make_log: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("kl_target: 0.123\n")
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps({"step": n, "metrics": {"kl_mean": 0.1, "reward_mean": 0.1 * n}}) + "\n" for n in range(30))
    )
    main(["report", str(log), "-o", str(tmp_path / "r.html"), "--config", str(tmp_path / "c.yaml")])
    assert "A line at 0.123: target." in (tmp_path / "r.html").read_text()


@pytest.mark.full
@pytest.mark.usefixtures("small_pictures")
def test_pictures_and_summary_lie_where_they_were_asked_for(make_log: Callable[..., str], tmp_path: Path) -> None:
    logs = [make_log("critical", run_id="../../evil"), make_log("warning")]
    out = tmp_path / "out"
    options = ["-o", str(out / "r.html"), "--png", str(out / "png"), "--markdown", str(out / "r.md")]
    assert main(["report", *logs, *options]) == 0
    names = sorted(path.name for path in (out / "png").iterdir())
    assert {"evil-kl.png", "evil-reward.png", "warning-reward.png", "all-reward.png"} <= set(names)
    assert all((out / "png" / name).read_bytes().startswith(b"\x89PNG") for name in names)
    summary = (out / "r.md").read_text()
    assert "## rldk: critical" in summary and "(png/evil-kl.png)" in summary
    assert sorted(path.name for path in out.iterdir()) == ["png", "r.html", "r.md"]


def test_curves_lie_along_hours_where_the_logs_have_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def page(*logs: Path) -> str:
        assert main(["report", *map(str, logs), "--axis", "hours", "-o", str(tmp_path / "r.html")]) == 0
        return (tmp_path / "r.html").read_text()

    timed, silent = tmp_path / "timed_events.jsonl", tmp_path / "silent_events.jsonl"
    timed.write_bytes(b"".join(Event(n, {"reward_mean": 1.0 * n}, 1800.0 * n).to_json() + b"\n" for n in range(9)))
    silent.write_bytes(b"".join(Event(n, {"reward_mean": 7.0 - n}).to_json() + b"\n" for n in range(9)))
    found = page(timed)
    assert '"axis":"hours"' in found and '"x":[0.0,4.0]' in found and "by hours" in found
    found = page(timed, silent)
    assert '"axis":"step"' in found and '"axis":"hours"' not in found
    assert "One of the logs has no times" in capsys.readouterr().out
