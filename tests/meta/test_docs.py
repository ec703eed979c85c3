"""What README and docs say is true: snippets, paths and generated pages. test_page_commands.py runs the rest."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rldk.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(page.read_text()) if found == language]


README = ROOT / "README.md"
RUN = [README, *(ROOT / "docs" / name for name in ("index.md", "faq.md", "python.md", "notifications.md"))]
SHELL = [line for page in RUN[:3] for body in blocks(page, "bash") for line in body.splitlines() if line.strip()]
SHELL = list(dict.fromkeys(SHELL))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo has been run, as a reader of the README would have; with runs that take no time to train."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/first_look.py"), "--simulated"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "critical" in done.stdout and "healthy" in done.stdout and "would have stopped at step" in done.stdout
    return folder


@pytest.mark.parametrize("line", [line for line in SHELL if not line.startswith("rldk ")])
def test_another_command_is_one_that_the_project_has(line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert words in (["pip", "install", "-e", "."], ["pip", "install", "-e", ".[dev]"])


SNIPPETS = [(page, number) for page in RUN for number in range(len(blocks(page, "python")))]


@pytest.mark.parametrize(("page", "number"), SNIPPETS, ids=[f"{page.stem}-{number}" for page, number in SNIPPETS])
def test_a_snippet_runs(page: Path, number: int, demo: Path) -> None:
    snippet = blocks(page, "python")[number]
    if "matplotlib" in snippet:
        pytest.importorskip("matplotlib")  # of the extra `plots`
    done = subprocess.run([sys.executable, "-W", "error", "-c", snippet], cwd=demo, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_readme_is_as_short_as_it_says() -> None:
    """A loop of one's own in three lines that the comments count, and from a path to plots in two."""
    plots, loop = blocks(README, "python")[:2]
    assert plots.split() == ["import", "rldk", 'rldk.scan("out/demo").plot()']
    calls = [line for line in loop.splitlines() if "run." in line or "rldk.start" in line]
    assert [line.partition("#")[2].strip() for line in calls] == ["1", "2", "3"]


def test_links_and_commands_of_the_pages_exist() -> None:
    for page in PAGES:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
        for command in re.findall(r"`rldk ([a-z]+)", text):
            assert command in COMMANDS, f"{page.relative_to(ROOT)}: {command}"


def test_paths_of_the_pages_exist() -> None:
    """What stands in backticks and begins with a folder of the project is a file or folder of it."""
    folders = [path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "out"))]
    for page in PAGES:
        for path in re.findall(rf"`((?:{'|'.join(folders)})/[\w./*-]*)`", page.read_text()):
            assert list(ROOT.glob(path)), f"{page.relative_to(ROOT)}: {path}"


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "docs/generate.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"rldk {command}" in capsys.readouterr().out


def test_the_picture_of_a_scan_shows_what_a_scan_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it does not, `python docs/screenshots.py` takes a new one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "104")
    main(["demo"])
    capsys.readouterr()
    main(["scan", "out/demo/broken_events.jsonl"])
    picture = (ROOT / "docs/images/scan.svg").read_text()
    shown = "".join(html.unescape(text) for text in re.findall(r"<text[^>]*clip-path[^>]*>([^<]*)</text>", picture))
    took = re.compile(r"[\d.]+m?s(?=·next:)")
    assert took.sub("", "".join(shown.split())) == took.sub("", "".join(capsys.readouterr().out.split()))
