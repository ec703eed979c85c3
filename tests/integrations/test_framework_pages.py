"""The pages of docs/frameworks: their snippets run, or name the package to install; their names and pictures exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "trainer"))

from warm_processes import Warm

from rldk.cli.main import main
from rldk.integrations.attach import TARGETS

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/frameworks").glob("*.md"))
SNIPPETS = [
    (page.stem, body)
    for page in PAGES
    for body in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
]  # fmt: skip

HIDE = "import sys; sys.modules.update(dict.fromkeys(('bitsandbytes', 'peft')))\n"
"""Transformers imports these where it finds them, which takes 2 s; no snippet needs them."""


@pytest.fixture(scope="module")
def loaded() -> Iterator[Warm]:
    """A process that has rldk in memory, for the snippets that get no further than to the package that is missing."""
    made = Warm(("numpy", "rldk.monitor", "rldk.integrations.attach"))
    yield made
    made.close()


@pytest.mark.parametrize(("page", "snippet"), SNIPPETS, ids=[page for page, _ in SNIPPETS])
def test_a_snippet_runs_or_names_the_package_to_install(page: str, snippet: str, tmp_path: Path, loaded: Warm) -> None:
    packages = {"huggingface": "transformers", "trackers": "wandb", "roll": "wandb"}
    packages |= {name: target.package for name, target in TARGETS.items()}
    words = ["-c", HIDE + snippet]
    if importlib.util.find_spec(packages[page]) is None:
        done = loaded.run(words, cwd=tmp_path, env=os.environ)
        assert done.returncode == 1 and "pip install" in done.stderr.splitlines()[-1]
    else:
        words.insert(0, sys.executable)
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr


SHELL = [body for page in PAGES for body in re.findall(r"^```bash\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)]
COMMANDS = sorted({line for body in SHELL for line in re.findall(r"^rldk (.+)$", body, re.MULTILINE)})


@pytest.mark.parametrize("command", COMMANDS)
def test_options_of_a_command_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command.partition(" -- ")[0])
    with pytest.raises(SystemExit):
        main([words[0], "--help"])
    said = capsys.readouterr().out
    assert all(re.search(rf"{word}\b", said) for word in words[1:] if word.startswith("--")), said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_and_sections_of_a_page(page: Path) -> None:
    text = page.read_text()
    for name in set(re.findall(r"rldk\.integrations\.(\w+)", text)):
        assert (ROOT / f"src/rldk/integrations/{name}.py").exists(), name
    for module, member in set(re.findall(r"rldk\.integrations\.(\w+)\.(\w+)", text)):
        assert re.search(rf"^(?:class|def) {member}\b", (ROOT / f"src/rldk/integrations/{module}.py").read_text(), re.MULTILINE)
    if page.stem != "index":
        for heading in ("Attach", "What is seen", "What is not", "Stopping", "A failure that was caught", "How this is tested"):
            assert f"\n## {heading}\n" in text
        assert f"](../images/frameworks/{page.stem}.svg)" in text
        assert f"({page.name})" in (page.parent / "index.md").read_text()
