"""docs/architecture.md names at most two files for each typical change, and they exist; every package has its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
TABLE = PAGE.partition("## Where do I change what")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| (?!to change|---)([^|]+?) \| (.+) \|$", TABLE, re.MULTILINE))
CHANGES = (
    "keys of a framework", "a detector", "restarts", "notification", "panel in report and dashboard", "TRL version",
    "metric of the trainer", "verdict rule", "command of the command line", "checkpoint format", "growing log",
    "view of the dashboard", "column of the dashboard's table",
)  # fmt: skip


def test_the_typical_changes_are_all_there() -> None:
    assert len(ROWS) == len(CHANGES)
    assert all(sum(change in row for row in ROWS) == 1 for change in CHANGES)


@pytest.mark.parametrize("change", ROWS)
def test_a_change_takes_at_most_two_files_that_exist(change: str) -> None:
    named = re.findall(r"`([^`]+)`", ROWS[change])
    assert 1 <= len(named) <= 2
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_package_has_its_line() -> None:
    packages = {path.parent.name for path in (ROOT / "src/rldk").glob("*/__init__.py")}
    listed = set(re.findall(r"`src/rldk/(\w+)`", PAGE.partition("## The packages")[2].partition("\n## ")[0]))
    assert packages == listed


def test_every_dependency_of_the_core_has_its_reason() -> None:
    """`pip install rldk` stays light: whatever it brings has a line that says what for."""
    project = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert listed is not None
    names = re.findall(r'^    "([\w-]+)', listed[1], re.MULTILINE)
    reasons = dict(re.findall(r"^\| ([^|]+?) \| used(.*?) \|$", PAGE.partition("## Decisions about libraries")[2], re.MULTILINE))
    lower = {name.lower(): reason for name, reason in reasons.items()}
    assert len(names) == 9 and [name for name in names if len(lower.get(name, "")) < 20] == []
