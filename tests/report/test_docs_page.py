"""The commands and the snippet of docs/report.md run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rldk.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs/report.md").read_text()
LINES = [line for body in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in body.splitlines()]
COMMANDS = [line for line in LINES if "example.org" not in line and "train.py" not in line]  # tests/cli has those with a job


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Path:
    """A folder with the runs of the demo under the names that the page uses."""
    home = tmp_path_factory.mktemp("page")
    (home / "out").mkdir()
    (home / "out/demo").symlink_to(logs)
    return home


@pytest.mark.full
@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_runs(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert main([word.replace("5", "0.3") if word == "5" else word for word in shlex.split(line)[1:]]) == 0


@pytest.mark.full
def test_the_snippet_of_the_page_runs(folder: Path) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run([sys.executable, "-W", "error", "-c", snippet], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "kl.svg").read_text().startswith("<svg")
