"""Completion in the shells themselves: what the Tab key offers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rldk.cli.main import main

CASES = [
    ("rldk sc", "scan"),
    ("rldk scan --fail", "--fail-on"),
    ("rldk scan --fail-on ", "warning"),
    ("rldk completion ", "fish"),
    ("rldk scan som", "some_log.jsonl"),
]
DRIVE = """
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "source ./script; bindkey '^I' list-choices; echo now r''eady"
zpty -r -m shell seen "*now ready*"
zpty -w -n shell "$1"$'\\t'
zpty -r -m shell seen "*$2*"
print -r -- "$seen"
zpty -d shell
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "some_log.jsonl").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed here")
    assert main(["completion", shell]) == 0
    (folder / "script").write_text(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_bash(typed: str, offered: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bash = write_script("bash", folder, capsys)
    words = typed.split(" ")
    given = f'COMP_WORDS=({" ".join(word or chr(39) * 2 for word in words)}); COMP_CWORD={len(words) - 1}'
    done = subprocess.run(
        [bash, "--norc", "-c", f'source ./script; {given}; _rldk; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert offered in done.stdout.split() and not done.stderr


@pytest.mark.parametrize(("typed", "offered"), CASES)
def test_fish(typed: str, offered: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fish = write_script("fish", folder, capsys)
    words = [fish, "--no-config", "-c", f'source ./script; complete -C "{typed}"']
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert offered in [line.split("\t")[0] for line in done.stdout.splitlines()] and not done.stderr


def test_zsh(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a person types it, in a terminal of its own."""
    zsh = write_script("zsh", folder, capsys)
    (folder / "drive").write_text(DRIVE)
    for typed, offered in CASES:
        done = subprocess.run([zsh, "-f", "drive", typed, offered], capture_output=True, text=True, timeout=60, check=True)
        assert offered in done.stdout.removeprefix(typed) and "_rldk:" not in done.stdout
