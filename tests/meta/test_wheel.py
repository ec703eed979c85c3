"""The files of a release: they build, their metadata is valid, and the wheel works with its declared dependencies alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FILES = ("LICENSE", "README.md", "pyproject.toml")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel, built from a copy of the project so that nothing is left in the tree."""
    copy = tmp_path_factory.mktemp("project")
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run([sys.executable, "-m", "build", "--no-isolation", str(copy)])
    return copy / "dist"


@pytest.fixture(scope="module")
def python(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the wheel and what its metadata asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    python = folder / "bin/python"
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    wheel = next(release.glob("*.whl"))
    install = ["install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    run([sys.executable, "-m", "pip", "--quiet", "--python", str(python), *install])
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).stdout.strip())
    installed = next(Distribution.discover(name="rldk", path=[str(site)]))
    for needed in dependencies(installed):
        for top in {file.parts[0] for file in needed.files or () if file.parts[0] not in ("..", "__pycache__")}:
            (site / top).symlink_to(Path(str(needed.locate_file(top))))
    return python


def dependencies(of: Distribution) -> list[Distribution]:
    """The distributions that one needs without its extras, and those that they need."""
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    waiting = list(of.requires or ())
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            found[requirement.name] = distribution(requirement.name)
            waiting += found[requirement.name].requires or ()
    return list(found.values())


def run(command: list[str | Path], expected: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
    assert done.returncode == expected, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def test_the_metadata_is_valid(release: Path) -> None:
    files = sorted(str(path) for path in release.iterdir())
    assert len(files) == 2
    assert run([sys.executable, "-m", "twine", "check", "--strict", *files]).stdout.count("PASSED") == 2


def test_the_wheel_holds_license_and_types(python: Path) -> None:
    script = (
        "import importlib.metadata as m, pathlib, rldk;"
        "files = {str(f) for f in m.files('rldk')};"
        "assert 'rldk/py.typed' in files and any(f.endswith('licenses/LICENSE') for f in files), files;"
        "print(pathlib.Path(rldk.__file__).parent)"
    )
    assert str(python.parents[1]) in run([python, "-c", script]).stdout


def test_the_command_of_the_wheel_runs(python: Path, tmp_path: Path) -> None:
    rldk = python.parent / "rldk"
    assert "scan" in run([rldk, "--help"]).stdout
    log = ROOT / "tests/golden/inputs/collapse_events.jsonl"
    assert "critical" in run([rldk, "scan", log], expected=1).stdout
    page = tmp_path / "report.html"
    run([rldk, "report", log, "-o", page])
    assert "<html" in page.read_text(encoding="utf-8")
