"""What rldk prints and writes for the runs in `inputs/`, in a form that is the same on every machine and every day.

Paths, versions, dates and the commit are taken out, numbers in JSON are rounded to six digits, and HTML has one tag per
line without style, script and long attributes. The event log and the table of a live run are kept byte for byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import rldk
from rldk.cli.main import main
from rldk.core.event import Event
from rldk.monitor import Monitor

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"
EXPECTED = HERE / "expected"
WIDTH = 120


@contextlib.contextmanager
def _plain_terminal() -> Iterator[None]:
    """In the folder of the inputs, so that printed paths are short; without colours, and always as wide."""
    before, folder = dict(os.environ), Path.cwd()
    os.environ.update(COLUMNS=str(WIDTH), NO_COLOR="1", TERM="dumb", LC_ALL="C.UTF-8")
    os.environ.pop("FORCE_COLOR", None)
    os.chdir(INPUTS)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)


def command(*arguments: str) -> str:
    """What `rldk ARGUMENTS` prints, with its exit status."""
    raw, error = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding="utf-8")
    with _plain_terminal(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = main(list(arguments))
    out.flush()
    lines = [line.rstrip() for line in raw.getvalue().decode().splitlines()]
    told = [f"stderr: {line}" for line in error.getvalue().splitlines()]
    return _anonymous("\n".join([f"$ rldk {' '.join(arguments)}", *lines, *told, f"exit status {status}", ""]))


def json_command(*arguments: str) -> str:
    """The object that `rldk ARGUMENTS` prints: keys in their order, one value per line."""
    printed = command(*arguments).splitlines()
    return "\n".join([printed[0], _stable_json(json.loads(printed[1])), printed[2], ""])


def _stable_json(value: Any) -> str:
    return json.dumps(_rounded(value), indent=1, ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.6g}")
    return value


def _anonymous(text: str) -> str:
    text = text.replace(str(INPUTS), "INPUTS").replace(str(HERE), "HERE").replace(f"rldk {rldk.__version__}", "rldk VERSION")
    text = re.sub(r"\b20\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?: UTC|Z|\+00:00)?", "DATE", text)
    text = re.sub(r"\b[\d.]+ (?:ms|s|min) · next: ", "TIME · next: ", text)
    return re.sub(r',\s*"git_sha": ?"\w+"', "", text)


class _Outline(HTMLParser):
    """The tags and the text of a page, one per line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        written = [name if value is None else f'{name}="{_shortened(value)}"' for name, value in attributes]
        self.lines.append(f"<{' '.join([tag, *written])}>")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""
        self.lines.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self.inside in ("style", "script") and not data.lstrip().startswith(("{", "[")):
            return
        if text := " ".join(data.split()):
            self.lines.append(_shortened(text, 2000))


def _shortened(text: str, longest: int = 160) -> str:
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    return f"{text[:60]}… {len(text)} characters, {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def outline(page: str) -> str:
    """A page of HTML, without what a reader does not see."""
    parser = _Outline()
    parser.feed(_anonymous(page))
    return "\n".join(parser.lines) + "\n"


def report_files(folder: Path) -> dict[str, str]:
    """The page of one run, the page of two, and the Markdown of both."""
    one, two, summary = folder / "one.html", folder / "two.html", folder / "summary.md"
    command("report", "collapse_events.jsonl", "--output", str(one))
    command("report", "healthy_events.jsonl", "collapse_events.jsonl", "--output", str(two), "--markdown", str(summary))
    return {
        "report_one_run.html": outline(one.read_text(encoding="utf-8")),
        "report_two_runs.html": outline(two.read_text(encoding="utf-8")),
        "report.md": _anonymous(summary.read_text(encoding="utf-8")),
    }


def events_of(name: str) -> list[Event]:
    """The events of one of the inputs, without what the monitor adds."""
    rows = (json.loads(line) for line in (INPUTS / name).read_text(encoding="utf-8").splitlines())
    return [Event(row["step"], row["metrics"], row["wall_time"]) for row in rows]


def monitor_files(folder: Path) -> dict[str, str]:
    """Every file that a `Monitor` writes for a run that collapses, and what it prints about it at the end."""
    limits = {"memory_usage": 0.95, "kl_mean": {"max": 40.0}}
    settings = {"learning_rate": 1e-6, "batch_size": 32, "model": "tiny", "api_key": "must not be written"}
    with Monitor(folder / "out", "run", limits=limits, run_config=settings, stop_on="critical", dry_run=True) as monitor:
        for event in events_of("collapse_events.jsonl"):
            monitor.observe(event)
            if event.step == 100:
                monitor.saved(event.step)
        summary = monitor.summary()
    found = {f"monitor_{path.name}": _live_file(path) for path in sorted((folder / "out").iterdir())}
    return {**found, "monitor_summary.json": _anonymous(_stable_json(_loaded(json.dumps(summary)))) + "\n"}


def _live_file(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        text = _stable_json(_loaded(text)) + "\n"
    return re.sub(r'"wall_seconds": [\d.e-]+', '"wall_seconds": "SECONDS"', _anonymous(text))


def _loaded(text: str) -> Any:
    return json.loads(text, parse_constant=lambda word: f"not strict JSON: {word}")


COMMANDS: dict[str, Callable[[], str]] = {
    "scan_folder.txt": lambda: command("scan", "."),
    "scan_one_run.txt": lambda: command("scan", "collapse_events.jsonl"),
    "scan_verbose.txt": lambda: command("scan", "-v", "collapse_events.jsonl", "warning.csv"),
    "scan_fail_on_warning.txt": lambda: command("scan", "--fail-on", "warning", "warning.csv", "trainer_state.json"),
    "scan_missing_file.txt": lambda: command("scan", "no_such_file.jsonl"),
    "scan_folder.json": lambda: json_command("scan", "--json", "."),
    "replay.txt": lambda: command("replay", "collapse_events.jsonl"),
    "watch_plain.txt": lambda: command("watch", "--plain", "--idle", "0.1", "collapse_events.jsonl"),
    "explain.txt": lambda: command("explain", "entropy_explosion"),
    "ingest.json": lambda: json_command("ingest", "--json", "."),
}


def record(folder: Path) -> dict[str, str]:
    """All goldens by file name; `folder` is a place to write to."""
    return {name: make() for name, make in COMMANDS.items()} | report_files(folder) | monitor_files(folder)
