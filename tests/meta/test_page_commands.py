"""Every command and snippet of README and docs runs; what needs another machine is checked by its names and options."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "monitor"))

import page_commands
from servers import MailServer

from rldk.cli.main import COMMANDS, Parser, main
from rldk.cli.options import add_project

pytestmark = pytest.mark.full

ROOT, PAGES = page_commands.ROOT, page_commands.PAGES
LINES = page_commands.rldk_commands()
SERVES = ("rldk dashboard", "rldk mcp")  # until they are stopped: tests/dashboard and tests/cli/test_mcp.py start them
NEEDS_MACHINE = ("$VERL_FILE_LOGGER_ROOT", "s3://")
RUN = [line for line in LINES if not line.startswith(SERVES) and not any(word in line for word in NEEDS_MACHINE)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the commands can be typed as they stand."""
    folder = tmp_path_factory.mktemp("world")
    with contextlib.redirect_stdout(io.StringIO()):
        page_commands.make_world(folder)
        for store in ("runs", "out", "."):
            assert main(["index", str(folder / store)]) == 0
    return folder


@pytest.fixture(scope="module")
def hook() -> Iterator[str]:
    """A web address of this machine, which takes whatever it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        do_PUT = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def mail() -> Iterator[str]:
    """The address of a mail server of this machine."""
    with ThreadingTCPServer(("127.0.0.1", 0), MailServer) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"smtp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize("line", RUN)
def test_a_command_runs(
    line: str, world: Path, hook: str, mail: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world)
    monkeypatch.setenv("PATH", f"{world / 'bin'}:/usr/bin:/bin")
    for name in ("RLDK_SLACK_URL", "RLDK_NTFY_URL"):
        monkeypatch.setenv(name, hook)
    monkeypatch.setenv("RLDK_SMTP_URL", mail)
    monkeypatch.setenv("RLDK_MAIL_TO", "me@example.org")
    status = main(page_commands.words_of(line, hook))
    said = capfd.readouterr()
    assert status in (0, 1), said.err
    assert said.out or said.err


def parser_of(command: str) -> Parser:
    parser = Parser(prog=f"rldk {command}")
    importlib.import_module(f"rldk.cli.commands.{command}").configure(parser)
    add_project(parser)
    return parser


@pytest.mark.parametrize("line", [line for line in LINES if line not in RUN])
def test_a_command_that_cannot_run_here_is_understood(line: str) -> None:
    _, command, *words = shlex.split(line, comments=True)
    parser_of(command).parse_args(words)


def test_options_in_the_text_exist() -> None:
    known = {
        command: {option for action in parser_of(command)._actions for option in action.option_strings} for command in COMMANDS
    }
    for page in PAGES:
        for command, rest in re.findall(r"`rldk ([a-z]+)([^`\n]*)`", page.read_text()):
            for option in re.findall(r"(?<![\w-])(--?[a-z][\w-]*)", rest.partition(" -- ")[0]):
                assert option in known[command], f"{page.relative_to(ROOT)}: rldk {command} has no {option}"


SNIPPETS = [
    (page, body) for page in PAGES for language, body in page_commands.FENCE.findall(page.read_text()) if language == "python"
]


@pytest.mark.parametrize(("page", "body"), SNIPPETS, ids=[page.stem for page, _ in SNIPPETS])
def test_a_snippet_compiles_and_what_it_imports_from_rldk_exists(page: Path, body: str) -> None:
    tree = ast.parse(body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rldk":
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rldk":
            assert hasattr(importlib.import_module("rldk"), node.attr), f"rldk has no {node.attr}"


def other_commands() -> list[str]:
    """Commands of blocks of bash that are not of rldk."""
    blocks = [
        body.replace("\\\n", " ")
        for page in PAGES
        for language, body in page_commands.FENCE.findall(page.read_text())
        if language == "bash" or (language == "" and re.match(r"(pip|make|python|pre-commit) ", body))
    ]
    lines = [re.sub(r"\s+#.*$", "", line).strip() for body in blocks for line in body.splitlines()]
    return list(dict.fromkeys(line for line in lines if line and not line.startswith("rldk ")))


@pytest.mark.parametrize("line", other_commands())
def test_another_command_names_what_exists(line: str) -> None:
    """Scripts, their flags, targets of make, extras of pip and modules of rldk; the programs themselves may be absent."""
    for name in re.findall(r"rldk(?:\.\w+)+", line):
        assert resolves(name), name
    words = line.split()
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
    for extras in re.findall(r"\[([\w,]+)\]", line) if words[0] == "pip" else []:
        project = (ROOT / "pyproject.toml").read_text()
        assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(",")), line
    for script in re.findall(r"(?:trainer|examples|scripts|benchmarks|tests)/[\w/]+\.py", line):
        assert (ROOT / script).exists(), script
        if re.match(r"trainer/(train_(?!tokenizer)|export)", script):
            flags = re.findall(r"(?<!\S)(--\w+)", line.partition(script)[2])
            assert set(flags) <= flags_of(script), set(flags) - flags_of(script)


def resolves(name: str) -> bool:
    """Whether a dotted name is a module or something in one."""
    home, _, last = name.rpartition(".")
    if (ROOT / "src" / f"{name.replace('.', '/')}.py").exists():
        return True
    return hasattr(importlib.import_module(home), last)


def flags_of(script: str) -> set[str]:
    """The flags that a script of the trainer takes, as its help prints them."""
    sys.path.insert(0, str(ROOT / "trainer"))
    try:
        module = importlib.import_module(Path(script).stem)
        with contextlib.redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit):
            module.main(["--help"])
        return set(re.findall(r"--\w+", said.getvalue()))
    finally:
        sys.path.remove(str(ROOT / "trainer"))


def blocks_of(page: str, language: str) -> list[str]:
    return [body for found, body in page_commands.FENCE.findall((ROOT / "docs" / page).read_text()) if found == language]


def test_settings_of_the_pages_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The TOML of docs/configuration.md and the YAML of the detectors' page."""
    (toml,) = blocks_of("configuration.md", "toml")
    (tmp_path / "rldk.toml").write_text(toml)
    page_commands.write_events(tmp_path / "run.jsonl", page_commands.healthy("ppo", steps=40, seed=1))
    monkeypatch.chdir(tmp_path)
    assert main(["scan", "run.jsonl"]) in (0, 1)
    (yaml,) = blocks_of("detectors/index.md", "yaml")
    (tmp_path / "limits.yaml").write_text(yaml)
    assert main(["scan", "run.jsonl", "--config", "limits.yaml"]) in (0, 1)


def test_the_action_takes_what_the_page_gives_it() -> None:
    import yaml

    (steps,) = blocks_of("ci.md", "yaml")
    known = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert set(yaml.safe_load(steps)[0]["with"]) <= set(known)


def test_every_command_is_shown() -> None:
    assert {line.split()[1] for line in LINES} == set(COMMANDS)
