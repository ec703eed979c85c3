"""The tree stays clean: layers are complete, files stay small, no logs of work."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/rldk"


def test_every_package_has_its_layer() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = next(contract["layers"] for contract in config["tool"]["importlinter"]["contracts"] if "layers" in contract)
    named = {name.strip().removeprefix("rldk.") for layer in layers for name in layer.split("|")}
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} - named == set()


def test_library_files_stay_small() -> None:
    sizes = {path.relative_to(SOURCE): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path): size for path, size in sizes.items() if size > 320} == {}


def test_no_logs_of_work() -> None:
    odd = re.compile(r"(SUMMARY|STATUS|PLAN|NOTES|TODO|IMPLEMENTATION)", re.IGNORECASE)
    pages = [path.name for folder in (ROOT, ROOT / "docs") for path in folder.glob("*.md")]
    assert [name for name in pages if odd.search(name)] == []


def test_nothing_is_evaluated_or_unpickled() -> None:
    """No code is run from a log: neither `eval` nor pickle in the library (the checks of `rldk.testing` pickle their own)."""
    forbidden = re.compile(r"(?<![.\w])(eval|exec)\(|\bpickle\.loads?\(|\byaml\.load\(|shell=True")
    found = [
        f"{path.name}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / "testing")
        for line in path.read_text().splitlines()
        if forbidden.search(line)
    ]
    assert found == []


def test_the_smoke_tests_exist() -> None:
    named = (ROOT / "tests/smoke.txt").read_text().split()
    assert named and [path for path in named if not (ROOT / path).exists()] == []
