"""Every snippet of docs/extending.md runs, from the first to the last, as a reader would type them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rldk.testing
from rldk.ingest import choose as table

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table, "ADAPTERS", table.ADAPTERS.copy())
    module = ModuleType("extending")
    monkeypatch.setitem(sys.modules, "extending", module)  # what is pickled must have a module to come from
    names: dict[str, Any] = module.__dict__
    for snippet in SNIPPETS:
        line = PAGE.read_text()[: PAGE.read_text().index(snippet)].count("\n")
        exec(compile("\n" * line + snippet, str(PAGE), "exec"), names)
    assert table.ADAPTERS[0].name == "lab_journal"
    for mark in names["test_refusal_surge"].pytestmark:
        for name in mark.args[1]:
            names["test_refusal_surge"](name)


def test_what_the_page_names_is_there() -> None:
    assert len(SNIPPETS) == 8
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text()):
        assert (PAGE.parent / link).exists(), link


def test_a_name_that_is_taken_cannot_be_registered() -> None:
    with pytest.raises(ValueError, match="An adapter named 'trl' exists already: give yours another name"):
        table.register(type("Mine", (table.ADAPTERS[0],), {"name": "trl"}))


def test_the_checks_are_public_and_simulated_runs_come_without_them() -> None:
    code = "import sys, rldk.testing.streams; print('rldk.forensics' in sys.modules, 'rldk.adapters' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]
    assert all(callable(getattr(rldk.testing, name)) for name in rldk.testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = rldk.testing.nothing
