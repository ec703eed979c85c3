"""`rldk scan`: one JSON object for programs, a ranking and a story for people, and an exit status for both."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rldk.cli.main import main
from rldk.monitor import Monitor
from rldk.testing.streams import healthy

Make = Callable[..., str]
Capture = pytest.CaptureFixture[str]

RUN = {
    "path": str, "adapter": str, "run_id": str, "events": int, "first_step": int, "last_step": int, "skipped_lines": int,
    "verdict": str, "scores": dict, "coverage": dict, "anomalies": list, "incidents": list, "would_stop": dict,
}  # fmt: skip
ANOMALY = {
    "type": str, "severity": str, "tracker": str, "step": int, "index": int, "message": str, "value": float,
    "threshold": float, "advice": str, "cleared_index": (int, type(None)),
}  # fmt: skip
INCIDENT = {
    "cause": str, "severity": str, "step": int, "index": int, "anomalies": list, "evidence": list, "advice": str,
    "last_good_step": (int, type(None)),
}  # fmt: skip


def scan(capsys: Capture, *arguments: str) -> tuple[int, Any]:
    status = main(["scan", "--json", *arguments])
    out, error = capsys.readouterr()
    assert error == ""
    assert out.count("\n") == 1, "one object, on one line"
    return status, json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is not strict JSON"))


def shown(capsys: Capture, *arguments: str, status: int = 0) -> str:
    assert main(["scan", *arguments]) == status
    out, error = capsys.readouterr()
    assert error == ""
    return out


def has(record: dict[str, Any], shape: dict[str, Any]) -> None:
    for name, kind in shape.items():
        assert name in record, name
        assert isinstance(record[name], kind) or (kind is float and isinstance(record[name], int)), (name, record[name])


def test_the_shape_that_other_tools_rely_on(make_log: Make, capsys: Capture) -> None:
    status, answer = scan(capsys, make_log("critical"))
    assert status == 1
    (run,) = answer["runs"]
    has(run, RUN)
    assert (run["verdict"], run["events"], run["first_step"], run["last_step"]) == ("critical", 250, 1, 250)
    assert set(run["coverage"]) >= {"metrics", "unmapped", "inactive"}
    assert all(set(row) == {"detector", "missing"} for row in run["coverage"]["inactive"])
    assert run["anomalies"] and run["incidents"]
    for anomaly in run["anomalies"]:
        has(anomaly, ANOMALY)
        assert anomaly["step"] == anomaly["index"] + 1, "the index counts from 0, the steps of this run from 1"
    for incident in run["incidents"]:
        has(incident, INCIDENT)
        assert all(0 <= number < len(run["anomalies"]) for number in incident["anomalies"])
    first = next(anomaly for anomaly in run["anomalies"] if anomaly["severity"] == "critical")
    assert run["would_stop"] == {"step": first["step"], "index": first["index"]}


def test_nothing_to_stop_for_is_null(make_log: Make, capsys: Capture) -> None:
    _, answer = scan(capsys, make_log("healthy"))
    (run,) = answer["runs"]
    assert (run["verdict"], run["would_stop"], run["anomalies"], run["incidents"]) == ("healthy", None, [], [])


def test_the_same_bytes_twice(make_log: Make, capsys: Capture) -> None:
    path = make_log("critical")
    assert scan(capsys, path) == scan(capsys, path)


def test_a_value_that_is_not_a_number_is_null(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "log.jsonl"
    rows = [f'{{"step": {n}, "metrics": {{"loss": {"NaN" if n > 5 else 0.5}, "reward": 0.{n}}}}}\n' for n in range(1, 10)]
    path.write_text("".join(rows))
    _, answer = scan(capsys, str(path))
    assert answer["runs"][0]["anomalies"][0]["value"] is None


def test_two_runs_in_one_file_are_two(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "log.jsonl"
    rows = [
        {"step": n, "metrics": {"reward": 0.5 + n % 3 / 10}, "model_info": {"run_id": name}} for name in "ab" for n in range(10)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, answer = scan(capsys, str(path))
    assert [(run["run_id"], run["events"]) for run in answer["runs"]] == [("a", 10), ("b", 10)]


def test_lines_that_were_skipped_are_counted(make_log: Make, capsys: Capture) -> None:
    path = make_log("healthy")
    with Path(path).open("a") as file:
        file.write("{torn\n[]\n")
    _, answer = scan(capsys, path)
    assert answer["runs"][0]["skipped_lines"] == 2
    assert "2 lines skipped" in shown(capsys, path)


@pytest.mark.parametrize(
    ("kind", "fail_on", "status"),
    [
        ("healthy", None, 0), ("warning", None, 0), ("critical", None, 1), ("supervised", None, 0),
        ("healthy", "warning", 0), ("warning", "warning", 1), ("critical", "warning", 1), ("supervised", "warning", 0),
        ("warning", "critical", 0), ("critical", "critical", 1), ("critical", "never", 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("json_too", [True, False])
def test_exit_status(make_log: Make, capsys: Capture, kind: str, fail_on: str | None, status: int, json_too: bool) -> None:
    arguments = [make_log(kind), *(["--fail-on", fail_on] if fail_on else []), *(["--json"] if json_too else [])]
    assert main(["scan", *arguments]) == status


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["scan"], 1), (["scan", "--json"], 1), (["scan", "-v", "--fail-on", "never"], 0),
        (["watch", "--idle", "0.1", "--fail-on", "critical"], 1),
        (["report", "--output", "report.html", "--fail-on", "critical"], 1),
    ],
)  # fmt: skip
def test_a_reader_that_has_gone_leaves_the_exit_status(make_log: Make, tmp_path: Path, command: list[str], status: int) -> None:
    whole = [sys.executable, "-m", "rldk", *command, make_log("critical")]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()  # as `| head` does when it has its lines
        said = process.stderr.read()
        assert (process.wait(timeout=60), said) == (status, b"")


def test_a_file_that_cannot_be_read_stops_no_other_and_is_not_passed_in_silence(
    make_log: Make, capsys: Capture, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    status, answer = scan(capsys, make_log("healthy"), str(empty))
    assert status == 2 and [run["verdict"] for run in answer["runs"]] == ["healthy"]
    assert answer["passed_over"] == [{"path": str(empty), "reason": "is empty."}]
    assert f"not judged: {empty}: is empty." in shown(capsys, str(empty), make_log("healthy"), status=2).replace("\n", "")
    assert main(["scan", str(empty), make_log("critical")]) == 1, "a critical is a critical"
    assert main(["scan", str(empty), make_log("critical"), "--fail-on", "never"]) == 2
    capsys.readouterr()
    assert main(["scan", str(empty)]) == 2 and "is empty" in capsys.readouterr().err
    other = tmp_path / "other.jsonl"
    other.write_text("")
    assert main(["scan", str(empty), str(other)]) == 2 and "No run could be read" in capsys.readouterr().err


def test_one_critical_among_several_is_enough(make_log: Make, capsys: Capture) -> None:
    assert main(["scan", make_log("healthy"), make_log("critical")]) == 1


@pytest.mark.parametrize(
    ("name", "content"), [("a.bin", os.urandom(64) * 50), ("b.txt", b"prose and no more\n"), ("c.jsonl", b"")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: Capture, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["scan", "--json", str(tmp_path / name)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("rldk: error: ") and name in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl does not exist"),
        ([], "the following arguments are required: PATH"),
        (["x", "--fail-on", "sometimes"], "invalid choice: 'sometimes'"),
        (["LOG", "--adapter", "zzz"], "Unknown adapter 'zzz'. Available: tensorboard, "),
        (["LOG", "--adapter", "verll"], "Unknown adapter 'verll'. Did you mean verl? Available: "),
        (["LOG", "--field-map", "a=zzz"], "zzz"),
        (["LOG", "--config", "nowhere.yaml"], "nowhere.yaml cannot be read: No such file or directory."),
    ],
)
def test_wrong_usage(make_log: Make, capsys: Capture, arguments: list[str], said: str) -> None:
    log = make_log("healthy")
    assert main(["scan", *(log if word == "LOG" else word for word in arguments)]) == 2
    out, error = capsys.readouterr()
    assert out == "" and said in error and error.count("\n") == 1


def test_the_ranking_comes_last_with_the_worst_first(make_log: Make, capsys: Capture) -> None:
    logs = [make_log(kind) for kind in ("healthy", "supervised", "warning", "critical")]
    said = shown(capsys, *logs, status=1)
    assert said.index("CRITICAL  critical") < said.index("WARNING  warning") < said.index("verdict   run")
    table = said[said.index("verdict   run") :].splitlines()
    named = [line.split()[0] for line in table[1:] if line[:1].strip()]  # a long cause goes on in the next line
    assert named[:4] == ["critical", "warning", "no_data", "healthy"]
    summary = said.splitlines()[-1]
    assert summary.startswith("1 critical · 1 warning · 1 no data · 1 healthy · ") and "next: rldk report" in summary


def test_summary_top_and_sort(make_log: Make, capsys: Capture) -> None:
    logs = [make_log(kind) for kind in ("healthy", "warning", "critical")]
    assert "What to do" not in shown(capsys, *logs, "--summary", status=1)
    top = shown(capsys, *logs, "--top", "1", status=1)
    assert "CRITICAL  critical" in top and "WARNING  warning" not in top and "1 critical · 1 warning · 1 healthy" in top
    orders = {"name": "critical healthy warning", "events": "critical healthy warning", "health": "critical warning healthy"}
    for order, names in orders.items():
        said = shown(capsys, *logs, "--summary", "--sort", order, status=1)
        assert [line.split()[1] for line in said.splitlines()[1:4]] == names.split(), order
    assert main(["scan", logs[0], "--top", "-1"]) == 2


def test_the_summary_of_one_run_has_its_line(make_log: Make, capsys: Capture) -> None:
    _, answer = scan(capsys, make_log("warning"))
    heading, line, *_, last = shown(capsys, make_log("warning"), "--summary").splitlines()
    assert heading.split()[:3] == ["verdict", "run", "events"]
    assert line.split(maxsplit=4) == ["warning", "warning", "80", "270", answer["runs"][0]["incidents"][0]["title"]]
    assert last.startswith("1 warning · ")
    assert "healthy" in shown(capsys, make_log("healthy"), "--summary").splitlines()[1]


def test_an_incident_names_what_explain_takes(make_log: Make, tmp_path: Path, capsys: Capture) -> None:
    _, answer = scan(capsys, make_log("warning"))
    cause = answer["runs"][0]["incidents"][0]["cause"]
    assert f"\n  More: rldk explain {cause} (found by clip_saturation)\n" in shown(capsys, make_log("warning"))
    assert main(["explain", cause]) == 0 == main(["explain", "clip_saturation"])
    capsys.readouterr()
    with Monitor(event_log_path=tmp_path / "own.jsonl") as monitor:
        for step in range(20):
            monitor.observe({"step": step, "reward": 0.01 * step})
            if step == 9:
                monitor.alert(step, "my_own", "Seen.", "warning", "Look.")
    said = shown(capsys, str(tmp_path / "own.jsonl"))
    assert "What to do: Look." in said and "rldk explain" not in said


def test_many_healthy_runs_are_folded(tmp_path: Path, capsys: Capture) -> None:
    for seed in range(5):
        events = healthy("ppo", 60, seed=seed)
        for event in events:
            event.model_info["run_id"] = f"run{seed}"
        (tmp_path / f"run{seed}.jsonl").write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    said = shown(capsys, str(tmp_path))
    assert "healthy  5 runs: run0, run1, run2, run3 … (-v lists them)" in said
    assert said.endswith(f"next: rldk report {tmp_path}\n")
    assert said.count("nothing found by") == 0 and shown(capsys, str(tmp_path), "-v").count("nothing found by") == 5


def test_runs_without_an_incident_have_no_story_in_a_ranking(make_log: Make, capsys: Capture) -> None:
    said = shown(capsys, make_log("healthy"), make_log("warning"))
    assert "WARNING  warning" in said and "HEALTHY" not in said


def test_the_story_of_a_run(make_log: Make, capsys: Capture) -> None:
    said = shown(capsys, make_log("warning"))
    assert "WARNING  warning\n" in said
    assert "80 events, steps 0–790, read as rldk; 1 warning anomaly" in said
    assert "warning at step 270: " in said and "the learning rate is too high" in said
    assert "step 270: 80% of the tokens are clipped." in said
    assert "What to do: " in said
    assert "Last good step: 200." in said


def test_a_healthy_run_is_said_to_be(make_log: Make, capsys: Capture) -> None:
    said = shown(capsys, make_log("healthy"))
    assert "HEALTHY  healthy" in said and "nothing found by" in said
    assert "^" not in said


def test_nothing_to_judge_is_said(make_log: Make, capsys: Capture) -> None:
    said = shown(capsys, make_log("supervised"))
    assert "NO_DATA  supervised" in said
    assert "no metric of reinforcement learning to judge by" in said
    assert "no RL metrics: this is a log of supervised training" in said


def test_the_moment_is_marked_under_the_curves(make_log: Make, capsys: Capture) -> None:
    lines = shown(capsys, make_log("warning")).splitlines()
    (mark,) = [line for line in lines if "^" in line]
    (curve,) = [line for line in lines if line.startswith("reward_mean")]
    begin = next(place for place, letter in enumerate(curve) if letter in "▁▂▃▄▅▆▇█")
    width = sum(letter in "▁▂▃▄▅▆▇█" for letter in curve)
    assert mark.index("^") - begin == 27 * width // 80, "row 27 of 80"
    assert mark.rstrip().endswith("step 270")


def test_verbose_lists_anomalies_and_who_could_not_judge(make_log: Make, capsys: Capture) -> None:
    path = make_log("warning")
    said = shown(capsys, "-v", path)
    assert "cleared at" in said and "clip_saturation" in said
    assert "Inactive, with the metric that is not logged:" in said
    assert "  entropy_collapse: entropy_mean" in said
    assert "Inactive, with" not in shown(capsys, path)


def test_settings_from_a_file(make_log: Make, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "thresholds.yaml"
    config.write_text("detectors: {clip_saturation: false, learning_rate_too_high: false}\n")
    _, answer = scan(capsys, make_log("warning"), "--config", str(config))
    assert answer["runs"][0]["verdict"] == "healthy"
    config.write_text("limits: {clip_frac: {max: 0.5, severity: critical}}\n")
    status, answer = scan(capsys, make_log("warning"), "--config", str(config))
    assert (status, answer["runs"][0]["would_stop"]) == (1, {"step": 230, "index": 23})
    config.write_text("detectors: {clip_saturatoin: false}\n")
    assert main(["scan", make_log("warning"), "--config", str(config)]) == 2
    assert "Did you mean clip_saturation" in capsys.readouterr().err


def test_keys_of_ones_own(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"step": n, "how good": 0.5 + n % 3 / 10, "loss": 0.5}) + "\n" for n in range(20)))
    _, answer = scan(capsys, str(path))
    assert answer["runs"][0]["verdict"] == "no_data"
    _, answer = scan(capsys, str(path), "--field-map", "how good=reward_mean")
    assert answer["runs"][0]["verdict"] == "healthy"
    assert answer["runs"][0]["coverage"]["metrics"]["reward_mean"] == "how good"


HOSTILE = "\x1b[31mred\x1b]0;title\x07[bold]x[/bold]\x00\u202e\nnext :smile: " + "a" * 500


@pytest.mark.parametrize("kind", ["healthy", "critical"])
def test_a_run_id_that_would_take_over_the_terminal(make_log: Make, capsys: Capture, kind: str) -> None:
    log = make_log(kind, run_id=HOSTILE)
    for arguments in ([log], ["-v", log, make_log("warning")]):
        main(["scan", *arguments])
        said = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\x00"} & set(said)
        assert "a" * 300 not in said
        assert len(arguments) > 1 or "[bold]x[/bold] next :smile:" in said, "shown as it is, not as markup"
    _, answer = scan(capsys, log)
    assert answer["runs"][0]["run_id"].startswith("\x1b[31mred"), "a program gets it whole"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "RLDK_DEBUG")}
    command = [sys.executable, "-m", "rldk", "scan", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**kept, **environment})


def test_colours_where_they_are_asked_for_and_none_where_they_are_not(make_log: Make) -> None:
    log = make_log("warning")
    assert "\x1b[" in run(log, FORCE_COLOR="1", TERM="xterm").stdout
    plain = run(log, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm").stdout
    assert "\x1b[33m" not in plain and "\x1b[3" not in plain
    assert "\x1b" not in run(log).stdout, "not into a pipe"


def test_a_terminal_that_has_no_unicode(make_log: Make) -> None:
    done = run(make_log("critical"), PYTHONIOENCODING="ascii:backslashreplace")
    assert done.returncode == 1
    assert "^" in done.stdout and not set("▁▂▃▄▅▆▇█") & set(done.stdout)


def test_a_folder_is_searched_and_what_was_not_judged_is_said(make_log: Make, tmp_path: Path, capsys: Capture) -> None:
    make_log("healthy", "runs/a/good.jsonl")
    make_log("critical", "runs/b/bad.jsonl")
    (tmp_path / "runs" / "picture.png").write_bytes(b"\x89PNG\r\n" + bytes(500))
    status, answer = scan(capsys, str(tmp_path / "runs"))
    assert status == 1
    assert sorted((run["run_id"], run["verdict"]) for run in answer["runs"]) == [("bad", "critical"), ("good", "healthy")]
    (passed,) = answer["passed_over"]
    assert passed["path"].endswith("picture.png") and passed["reason"]
    said = shown(capsys, str(tmp_path / "runs"), status=1)
    assert "not judged" in said and "picture.png" in said


def test_a_long_list_of_what_was_not_judged_is_cut(make_log: Make, tmp_path: Path, capsys: Capture) -> None:
    make_log("healthy", "runs/good.jsonl")
    for number in range(9):
        (tmp_path / "runs" / f"{number}.png").write_bytes(b"\x89PNG\r\n" + bytes(500))
    said = shown(capsys, str(tmp_path / "runs"))
    assert said.count("not judged:") == 5 and "and 4 more files not judged" in said
    assert shown(capsys, "-v", str(tmp_path / "runs")).count("not judged:") == 9


def test_a_folder_with_nothing_to_judge(tmp_path: Path, capsys: Capture) -> None:
    assert main(["scan", str(tmp_path)]) == 2
    assert "holds no file that may be a log" in capsys.readouterr().err


def test_a_glob(make_log: Make, tmp_path: Path, capsys: Capture) -> None:
    make_log("healthy", "one.jsonl")
    make_log("warning", "two.jsonl")
    _, answer = scan(capsys, str(tmp_path / "*.jsonl"))
    assert [run["run_id"] for run in answer["runs"]] == ["one", "two"]


def test_compressed_data_that_ends_too_early_is_said(make_log: Make, capsys: Capture) -> None:
    path = Path(make_log("healthy"))
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    _, answer = scan(capsys, str(path))
    assert any("ends too early" in note for note in answer["runs"][0]["notes"])
    assert "ends too early" in shown(capsys, str(path))


@pytest.mark.parametrize("suffix", ["csv", "json", "log"])
def test_columns_that_found_no_place_are_named(tmp_path: Path, capsys: Capture, suffix: str) -> None:
    rows = [{"step": n, "loss": 0.5 + n % 3, "kl": 0.01, "grad_nrom": 1.0, "my_objective": 1.0 * n} for n in range(1, 13)]
    text = {
        "csv": "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n",
        "json": json.dumps(rows),
        "log": "".join(f"{ ({**row, 'epoch': 0.1}) }\n" for row in rows),
    }[suffix]
    path = tmp_path / f"run.{suffix}"
    path.write_text(text)
    said = " ".join(shown(capsys, str(path)).split())
    assert said.count("unrecognised keys: ") == 1
    assert "unrecognised keys: grad_nrom, my_objective; map them with --field-map grad_nrom=grad_norm" in said


def test_where_all_found_a_place_nothing_is_said_of_it(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "run.csv"
    path.write_text("step,loss,kl\n" + "".join(f"{n},0.5,0.01\n" for n in range(12)))
    assert "unrecognised keys" not in shown(capsys, str(path))


def test_beside_the_verdict_stand_recovery_worst_scores_coverage_and_the_machine(tmp_path: Path, capsys: Capture) -> None:
    rows = []
    for step in range(200):
        clip, pace = (0.8 if 20 <= step < 40 else 0.1), (1000.0 if step < 60 else 90.0)
        metrics = {"reward_mean": 0.5 + 0.01 * (step % 3), "clip_frac": clip, "tokens_per_second": pace}
        rows.append({"step": step, "metrics": metrics})
    path = tmp_path / "run_events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = shown(capsys, str(path))
    assert "WARNING (recovered)" in said and said.count(", recovered at step 46") == 2
    assert "overall health 1.00 (at worst 0.70)" in said
    assert "coverage weak: " in said and "checks could run; logging " in said
    assert said.index("Machine (not part of the verdict)") > said.index("What to do")
    assert "anomaly, recovered" in said, "the machine is not among the anomalies"


def test_each_limit_that_was_crossed_is_named(make_log, tmp_path, capsys):
    config, page, summary = tmp_path / "limits.yaml", tmp_path / "page.html", tmp_path / "summary.md"
    config.write_text("limits:\n  clip_frac: {max: -1, severity: critical}\n  reward_mean: {min: 100, severity: critical}\n")
    log = make_log("healthy")
    assert main(["scan", log, "--config", str(config), "-v"]) == 1
    said = capsys.readouterr().out
    assert "limit crossed" in said and "user_limit_exceeded: clip_frac" in said and "user_limit_exceeded: reward_mean" in said
    assert "many tokens reach the clip range" in said and "Compare samples with those of the best step" in said
    main(["report", log, "--config", str(config), "-o", str(page), "--markdown", str(summary)])
    for told in (said, page.read_text(), summary.read_text().replace("\\_", "_")):
        assert "below your limit of 100" in told and "above your limit of -1" in told
