"""`rldk gate`: what passes and what fails, the formats of CI services, and the action of the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from xml.etree.ElementTree import parse

import pytest
import yaml

from rldk.cli.main import main

ROOT = Path(__file__).parents[2]
Make = Callable[..., str]


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, bool]]:
    status = main(["gate", *arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is (status == 0)
    return status, {check["name"]: check["passed"] for check in found["checks"]}


@pytest.mark.parametrize(("kind", "fail_on", "status"), [
    ("healthy", "critical", 0), ("warning", "critical", 0), ("warning", "warning", 1), ("critical", "critical", 1),
    ("critical", "never", 0),
])  # fmt: skip
def test_the_verdict(make_log: Make, capsys: pytest.CaptureFixture[str], kind: str, fail_on: str, status: int) -> None:
    assert gate(capsys, make_log(kind), "--fail-on", fail_on) == (status, {"verdict": status == 0})


@pytest.mark.parametrize(("fail_on", "status"), [("critical", 1), ("warning", 1), ("never", 0)])
def test_a_run_that_cannot_be_judged_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fail_on: str, status: int
) -> None:
    log = tmp_path / "crashed.jsonl"
    log.write_text("".join(json.dumps({"step": step, "reward": 0.3, "kl": 0.01}) + "\n" for step in range(3)))
    assert gate(capsys, str(log), "--fail-on", fail_on) == (status, {"verdict": status == 0})
    main(["gate", str(log), "--fail-on", fail_on])
    said = " ".join(capsys.readouterr().out.split())
    assert ("only 3 events: too few to judge. A run that cannot be judged does not pass; --fail-on never" in said) is bool(status)


def test_limits_are_on_where_a_metric_ended(make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log("warning")  # its reward rises from 0.3 to about 0.7, and its clip fraction from 0.1 to 0.8
    found = gate(capsys, log, "--max", "clip_frac=0.5", "--max", "reward=0.8", "--min", "reward_mean=0.6", "--min", "kl=0")
    assert found == (1, {
        "verdict": True, "max clip_frac=0.5": False, "max reward_mean=0.8": True, "min reward_mean=0.6": True,
        "min kl_mean=0": False,
    })  # fmt: skip


def test_a_limit_by_a_key_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "ppo.jsonl"
    row = {"objective/kl": 2.0, "objective/scores": 0.5, "policy/approxkl_avg": 0.01, "val/ratio_var": 0.04, "my_kl": 3.0}
    log.write_text("".join(json.dumps({"step": step, **row}) + "\n" for step in range(20)))
    limits = ("--max", "objective/kl=3", "--min", "objective/kl=3", "--max", "my_kl=3", "--max", "val/ratio_var=0.1")
    assert gate(capsys, str(log), *limits) == (1, {
        "verdict": True, "max objective/kl=3": True, "max my_kl=3": True, "max val/ratio_var=0.1": False,
        "min objective/kl=3": False,
    })  # fmt: skip
    main(["gate", str(log), *limits])
    said = " ".join(capsys.readouterr().out.split())
    assert "objective/kl (kl_mean) ended at 2; at most 3 is required" in said and "set the limit on ratio_std" in said
    assert gate(capsys, str(log), "--field-map", "my_kl=kl_update", "--max", "my_kl=2")[1]["max my_kl=2"] is False


def test_a_baseline(make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = make_log("healthy"), make_log("critical")
    assert gate(capsys, good, "--baseline", good) == (0, {"verdict": True, "baseline verdict": True, "baseline metrics": True})
    status, found = gate(capsys, bad, "--baseline", good, "--fail-on", "never")
    assert status == 1 and not found["baseline verdict"] and not all(found.values())
    assert gate(capsys, good, "--baseline", bad)[1]["baseline verdict"]


WRONG = {"kll=1": "Did you mean kl", "kl_mean": "METRIC=VALUE", "kl_mean=x": "METRIC=VALUE"}


@pytest.mark.parametrize(("option", "said"), WRONG.items())
def test_a_wrong_limit(make_log: Make, capsys: pytest.CaptureFixture[str], option: str, said: str) -> None:
    assert main(["gate", make_log("healthy"), "--max", option]) == 2
    assert said in capsys.readouterr().err


def test_text(make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", make_log("critical"), "--min", "reward_mean=-1000"]) == 1
    said = capsys.readouterr().out
    assert "failed  critical  verdict: critical" in said and "1 check of 2 failed" in said


def test_junit_and_sarif(make_log: Make, tmp_path: Path) -> None:
    log, xml, sarif = make_log("critical"), tmp_path / "ci" / "gate.xml", tmp_path / "ci" / "gate.sarif"
    assert main(["gate", log, "--max", "kl=1000000", "--junit", str(xml), "--sarif", str(sarif)]) == 1
    suites = parse(xml).getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None] == ["verdict"]
    (run,) = json.loads(sarif.read_text())["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {one["ruleId"] for one in run["results"]} == rules and "gate/verdict" in rules and "entropy_explosion" in rules
    assert {one["level"] for one in run["results"]} <= {"error", "warning"}


def test_hostile_names_do_nothing_in_xml(make_log: Make, tmp_path: Path) -> None:
    xml = tmp_path / "gate.xml"
    assert main(["gate", make_log("critical", run_id='<x a="1">&\x1b[31m'), "--junit", str(xml)]) == 1
    assert [suite.get("name") for suite in parse(xml).getroot()] == ['<x a="1">&']


@pytest.fixture
def action(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the commands of action.yml as GitHub does, one shell after the other."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "rldk").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rldk "$@"\n')
    (tools / "rldk").chmod(0o755)
    steps = yaml.safe_load((ROOT / "action.yml").read_text())

    def run(**inputs: str) -> subprocess.CompletedProcess[str]:
        given = {name: entry.get("default", "") for name, entry in steps["inputs"].items()} | inputs
        for step in steps["runs"]["steps"]:
            if "if" in step and not given["install"]:
                continue
            named = {name: _filled(value, given) for name, value in step.get("env", {}).items()}
            environment = {
                **os.environ, **named, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md"),
            }  # fmt: skip
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                return done
        return done

    return run


def _filled(text: str, given: dict[str, Any]) -> str:
    for name, value in given.items():
        text = text.replace(f"${{{{ inputs.{name} }}}}", value)
    return text


def test_the_action_of_the_repository(
    make_log: Make, tmp_path: Path, action: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    good, bad = make_log("healthy"), make_log("critical")
    done = action(path=good, baseline=good, max="kl_mean=100 clip_frac=1", min="reward_mean=-100", install="")
    assert (done.returncode, done.stderr) == (0, "") and "6 checks passed" in done.stdout
    assert "healthy" in (tmp_path / "step.md").read_text()
    assert {path.name for path in (tmp_path / "rldk").iterdir()} == {"report.html", "summary.md", "junit.xml", "rldk.sarif"}
    assert action(path=bad, install="").returncode == 1


def test_the_rewards_of_pairs_are_judged_by_their_margin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def log(name: str, chosen: float, rejected: float) -> str:
        noise, rows = Random(name), []
        for step in range(200):
            better, worse = noise.gauss(chosen, 0.02), noise.gauss(rejected, 0.02)
            pair = {"chosen_reward_mean": better, "rejected_reward_mean": worse, "preference_margin": better - worse}
            rows.append(json.dumps({"step": step, **pair}))
        (tmp_path / name).write_text("\n".join(rows))
        return str(tmp_path / name)

    base = log("base.jsonl", 0.5, -0.5)
    assert gate(capsys, log("moved.jsonl", 0.2, -0.8), "--baseline", base, "--fail-on", "never")[1]["baseline metrics"]
    checks = gate(capsys, log("worse.jsonl", 0.5, 0.3), "--baseline", base, "--fail-on", "never")[1]
    assert "baseline preference_margin" in checks and "baseline rejected_reward_mean" not in checks


def test_files_that_are_not_listed_are_in_the_json(make_log: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_log("healthy")
    for number in range(7):
        (tmp_path / f"empty{number}.jsonl").write_text("{}\n")
    main(["gate", str(tmp_path)])
    assert "and 2 more files not judged (--json lists them)" in capsys.readouterr().out
    main(["gate", str(tmp_path), "--json"])
    assert len(json.loads(capsys.readouterr().out)["passed_over"]) == 7
