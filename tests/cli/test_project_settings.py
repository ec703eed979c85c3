"""`rldk.toml`, the environment and the command line: which wins, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rldk
from rldk.cli.main import COMMANDS, main
from rldk.storage.cache import cache_limit

Make = Callable[..., str]
LIMIT = '[limits.reward_mean]\nmax = -100\nseverity = "critical"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    monkeypatch.chdir(folder / "sub")
    return folder


def test_a_file_above_holds(project: Path, make_log: Make) -> None:
    log = make_log("healthy")
    assert main(["scan", log]) == 0
    (project / "rldk.toml").write_text(LIMIT)
    assert main(["scan", log]) == 1
    assert rldk.scan(log).verdict == "healthy" and rldk.scan(log, config=project / "rldk.toml").verdict == "critical"


def test_pyproject(project: Path, make_log: Make) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.rldk]\nfail_on = "warning"\n')
    assert main(["scan", make_log("warning")]) == 1


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    project: Path, make_log: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log("critical")
    (project / "rldk.toml").write_text('fail_on = "never"\n')
    assert main(["scan", log]) == 0
    monkeypatch.setenv("RLDK_FAIL_ON", "warning")
    assert main(["scan", log]) == 1
    assert main(["scan", log, "--fail-on", "never"]) == 0


def test_yaml_is_still_read_and_wins_over_the_file(project: Path, make_log: Make) -> None:
    (project / "rldk.toml").write_text(LIMIT + "[detectors.plateau]\nenabled = false\n")
    (project / "own.yaml").write_text("limits: {reward_mean: {max: 1000}}")
    assert main(["scan", make_log("healthy"), "--config", str(project / "own.yaml")]) == 0
    (project / "rldk.toml").write_text('config = "own.yaml"\n')
    assert main(["scan", make_log("healthy")]) == 0


def test_a_field_map(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "own.jsonl"
    log.write_text("".join(f'{{"step": {n}, "mystery": {n}, "reward": 0.1}}\n' for n in range(20)))
    (project / "rldk.toml").write_text('[field_map]\nmystery = "kl_mean"\n')
    assert main(["ingest", str(log), "--json"]) == 0
    assert '"kl_mean": "mystery"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('sensitivty = "low"', "unknown key 'sensitivty'. Did you mean sensitivity?"),
        ('sensitivity = "lo"', "Expected `sensitivity` to be one of"),
        ("[detectors.platau]\nenabled = false", "Did you mean plateau"),
        ("field_map = 3", "Expected `field_map` to map keys to metrics"),
        ('fail_on = "always"', "expected `fail_on` to be one of"),
        ('jobs = "many"', "expected `jobs` to be a whole number"),
        ("a = = b", "is not TOML"),
    ],
)
def test_a_mistake_is_refused(project: Path, make_log: Make, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "rldk.toml").write_text(text)
    assert main(["scan", make_log("healthy")]) == 2
    error = capsys.readouterr().err
    assert said in error and "rldk.toml" in error


def test_init_writes_a_file_that_changes_nothing(project: Path, make_log: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(project)]) == 0 and main(["scan", make_log("healthy")]) == 0
    assert main(["init", str(project)]) == 2 and "--force replaces it" in capsys.readouterr().err
    assert main(["init", str(project), "--force"]) == 0
    text = (project / "rldk.toml").read_text()
    lines = [line for line in text.splitlines() if "=" in line or "[" in line]
    kept = [line.lstrip("# ") for line in lines if "yaml" not in line and "RLDK" not in line]
    (project / "rldk.toml").write_text("\n".join(kept))
    assert main(["scan", make_log("healthy"), "--adapter", "rldk"]) != 2, "every line of it is a setting that is read"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_fits_the_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text, examples = capsys.readouterr().out.split("examples:\n")
    assert f"rldk {command}" in examples
    assert max(map(len, text.splitlines())) <= 72


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(command in said for command in COMMANDS) and "summary" in said and f"for {shell}" in said


@pytest.mark.parametrize("command", ["dashboard", "scan", "report", "index"])
def test_commands_that_copy_logs_take_the_size_of_the_cache_from_the_file(
    project: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rldk.storage.cache._set_limit", None)
    monkeypatch.delenv("RLDK_CACHE_SIZE", raising=False)
    (project / "rldk.toml").write_text('cache_size = "3GB"\n')
    main([command, "missing"])
    assert cache_limit() == 3 * 10**9
    (project / "rldk.toml").write_text('cache_size = "much"\n')
    assert main([command, "missing"]) == 2
    assert "cache_size: Expected a size such as 20GB or 500MB, got 'much'." in " ".join(capsys.readouterr().err.split())


def test_init_replaces_a_file_that_cannot_be_used(project: Path) -> None:
    (project / "rldk.toml").write_text('cache_size = "much"\n')
    assert main(["init", str(project), "--force"]) == 0


def test_a_help_option_of_the_command_that_is_run_leaves_the_settings_in_force(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "rldk.toml").write_text("fail_on = 'no such verdict'")
    command = [sys.executable, "-c", "pass"]
    assert main(["run", "--", *command, "-h"]) == 2 and "rldk.toml" in capsys.readouterr().err
