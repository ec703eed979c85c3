"""The snippet of docs/report.md runs; tests/meta/test_page_commands.py has its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/report.md").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, logs: Path) -> Path:
    """A folder with the runs of the demo under the names that the page uses."""
    home = tmp_path_factory.mktemp("page")
    (home / "out").mkdir()
    (home / "out/demo").symlink_to(logs)
    return home


@pytest.mark.full
def test_the_snippet_of_the_page_runs(folder: Path) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run([sys.executable, "-W", "error", "-c", snippet], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "kl.svg").read_text().startswith("<svg")
