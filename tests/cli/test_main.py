"""The command line as a whole: help, exit statuses, one sentence for each error, and what goes wrong around it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rldk._version import __version__
from rldk.cli.main import COMMANDS, main


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "RLDK_DEBUG")}
    command = [sys.executable, "-m", "rldk", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**settings, **environment})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"step": n, "metrics": {"reward": 0.1 * n, "kl": 0.01}}) + "\n" for n in range(50)))
    return path


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert all(name in said and summary in said for name, summary in COMMANDS.items())


def test_without_arguments_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "usage: rldk" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"rldk {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_module_and_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"rldk.cli.commands.{command}")
    assert module.__doc__ and callable(module.configure) and callable(module.run)
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0 and f"usage: rldk {command}" in said
    assert " ".join(module.__doc__.split()) in " ".join(said.split())


def test_no_command_is_forgotten_in_the_table() -> None:
    folder = Path(importlib.import_module("rldk.cli.commands").__path__[0])
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scn"], "There is no command 'scn'. Did you mean scan?"),
        (["zzz"], "There is no command 'zzz'. See `rldk --help`."),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["ingest"], "the following arguments are required: PATH. See `rldk ingest --help`"),
        (["ingest", "--nonsense", "x"], "unrecognized arguments"),
        (["scan", "x", "--confg", "y"], "Did you mean --config?"),
        (["ingest", "/no/such/file"], "/no/such/file does not exist"),
        (["ingest", "x", "-o", "out.xlsx"], "Expected the output to end in one of"),
        (["catalog", "no_such_metric"], "No metric 'no_such_metric'"),
        (["catalog", "--group", "nonsense"], "Expected the group to be one of"),
    ],
)
def test_an_error_is_one_sentence_and_status_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == "" and error.startswith("rldk: error: ") and said in error
    assert error.count("\n") == 1 and error.endswith("\n") and "Traceback" not in error


def test_errors_of_the_real_program() -> None:
    done = run("ingest", "/no/such/file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rldk: error: /no/such/file does not exist.\n"


def test_an_error_that_nobody_expected_is_a_sentence_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("rldk.ingest.read_runs", broken)
    monkeypatch.delenv("RLDK_DEBUG", raising=False)
    assert main(["ingest", str(log)]) == 2
    assert capsys.readouterr().err == "rldk: error: unexpected ZeroDivisionError: division by zero (RLDK_DEBUG=1 shows where)\n"
    monkeypatch.setenv("RLDK_DEBUG", "1")
    assert main(["ingest", str(log)]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_status_130(monkeypatch: pytest.MonkeyPatch, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rldk.ingest.read_runs", interrupted)
    assert main(["ingest", str(log)]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["catalog"], ["catalog", "lr"], ["catalog", "lr", "--json"], ["catalog", "--json"]])
def test_a_reader_that_has_gone_is_no_error(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "rldk", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=60) in (0, -signal.SIGPIPE)
        assert said == b""


def test_options_may_stand_before_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "catalog", "kl_mean"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "kl_mean"


def test_hostile_text_in_an_error_is_made_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "/no/\x1b[31mred\x1b[0m\x07\nname"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\x07" not in said and said.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_of_any_encoding(encoding: str, log: Path) -> None:
    for arguments in (["ingest", str(log), "--explain"], ["ingest", str(log), "--json"], ["catalog", "value_loss"]):
        done = subprocess.run(
            [sys.executable, "-m", "rldk", *arguments], capture_output=True, timeout=60, env={**os.environ,
            "PYTHONIOENCODING": encoding}
        )
        assert (done.returncode, done.stderr) == (0, b"")
        done.stdout.decode(encoding)


def test_no_colour_where_none_is_wanted(log: Path) -> None:
    assert "\x1b" not in run("ingest", str(log)).stdout
    assert "\x1b[3" not in run("ingest", str(log), "--explain", NO_COLOR="1", FORCE_COLOR="1").stdout
    assert "\x1b" not in run("catalog", TERM="dumb").stdout
