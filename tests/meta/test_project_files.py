"""The files of a public project are there and agree with each other: versions, commands, hooks and templates."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize(
    "name",
    ["LICENSE", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", ".github/pull_request_template.md",
     ".pre-commit-config.yaml", "src/rldk/py.typed", "docs/architecture.md", "docs/contributing.md"],
)  # fmt: skip
def test_a_file_that_people_look_for(name: str) -> None:
    assert (ROOT / name).is_file()


def test_the_license_is_the_one_that_the_package_names() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "Version 2.0" in text and "END OF TERMS AND CONDITIONS" in text


def supported() -> list[str]:
    spec = importlib.util.spec_from_file_location("interpreters", ROOT / "tests/interpreters.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [f"{major}.{minor}" for major, minor in module.SUPPORTED]


def test_the_supported_versions_of_python_are_the_same_everywhere() -> None:
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in PROJECT["classifiers"]]
    assert [match[1] for match in named if match] == supported()
    assert PROJECT["requires-python"] == f">={supported()[0]}"
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["jobs"]["python"]["strategy"]["matrix"]["python"] == supported()


def test_the_workflow_runs_what_the_makefile_has() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = {command.split()[1] for command in commands if command.startswith("make ")}
    assert "test" in targets
    assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) for target in targets)


def test_hooks_are_local_and_part_of_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    for hook in hooks[0]["hooks"]:
        assert hook["entry"].split()[0].replace(".venv/bin/", "$(BIN)/") in lint, hook["entry"]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_is_whole(template: Path) -> None:
    form = yaml.safe_load(template.read_text())
    if template.stem != "config":
        assert {"name", "description", "body"} <= set(form)
        assert all({"type", "id", "attributes"} <= set(field) for field in form["body"])
        for command in re.findall(r"`rldk ([a-z]+)", template.read_text()):
            from rldk.cli.main import COMMANDS

            assert command in COMMANDS


def test_the_changelog_is_grouped() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    version = (ROOT / "src/rldk/_version.py").read_text().split('"')[-2]
    assert f"## {version}" in text
    allowed = {"Added", "Changed", "Deprecated", "Fixed", "Removed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= allowed


def test_what_is_developed_with_is_listed_once() -> None:
    """The extra `dev` is the one list; dependency groups would be a second one."""
    assert "dependency-groups" not in tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "rldk[all,test,lint,docs]" in PROJECT["optional-dependencies"]["dev"]
    assert ".[dev]" in (ROOT / "Makefile").read_text()
