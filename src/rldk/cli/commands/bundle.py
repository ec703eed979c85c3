"""Make a redacted archive of a run, to report a false alarm or a miss: its metrics and its judgement, without text.

Prompts, responses, paths, notes, run names and the values of the configuration that are text are left out, and so is everything
that looks like a secret. The archive is written to this machine and sent nowhere.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk._version import __version__
from rldk.cli.options import add_json, add_reading, judge_given
from rldk.cli.output import console, print_json
from rldk.core.files import replacing, strict
from rldk.core.text import clean, counted

if TYPE_CHECKING:
    from rldk.judge.result import Result
    from rldk.runs.run import Run

EXAMPLES = """
rldk bundle out/run.jsonl
rldk bundle out/run.jsonl -o false_alarm.tar.gz --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="RUN", help="a file, a folder or a glob")
    parser.add_argument("-o", "--output", default="rldk_bundle.tar.gz", metavar="FILE", help="the archive")
    add_json(parser, "what was written")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    judged = judge_given(args, args.paths)
    files: dict[str, bytes] = {"README.txt": _ABOUT.encode()}
    for number, result in enumerate(judged, 1):
        files[f"run{number}/events.jsonl"] = _events(result.run, f"run{number}")
        files[f"run{number}/result.json"] = _as_json(_without(_own_keys(result.run), _result(result, f"run{number}")))
        files[f"run{number}/settings.json"] = _as_json(_settings(result.run))
    files["versions.json"] = _as_json({"rldk": __version__})
    with replacing(args.output) as part, tarfile.open(part, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    if args.json:
        print_json({"file": args.output, "contents": {name: len(content) for name, content in files.items()}})
    else:
        _show(args.output, files)
    return 2 if judged.unread else 0


_ABOUT = """A run as rldk sees it, without text: metrics by canonical name, the judgement, and the numbers of the configuration.
Prompts, responses, paths, notes, names and everything that looks like a secret have been left out. Look before you send it.
"""


def _show(path: str, files: dict[str, bytes]) -> None:
    out = console()
    for name, content in files.items():
        out.print(f"  {name}  {counted(len(content), 'byte')}", style="dim")
    out.print(f"wrote {clean(Path(path).absolute(), 1000)}; nothing was sent.")
    out.print(f"Look at it before you share it: tar -xzf {clean(path)}")


def _as_json(value: Any) -> bytes:
    return (json.dumps(strict(value), indent=2) + "\n").encode()


def _events(run: Run, name: str) -> bytes:
    """The metrics of each event under canonical names; keys of the user's own become `key1`, `key2` …."""
    from rldk.core.event import Event

    renamed = _own_keys(run)
    start = next((event.wall_time for event in run.events() if event.wall_time is not None), None)
    lines = []
    for event in run.events():
        metrics = {renamed.get(metric, metric): value for metric, value in event.metrics.items()}
        when = None if event.wall_time is None or start is None else event.wall_time - start
        kept = Event(event.step, metrics, when)
        kept.model_info = {"run_id": name, "phase": str(event.model_info.get("phase", "train"))}
        lines.append(kept.to_json() + b"\n")
    return b"".join(lines)


def _own_keys(run: Run) -> dict[str, str]:
    """The metrics that the catalogue does not know, or that have a part of the user's own, with what stands for each."""
    from rldk.core.catalog import CATALOG

    own = [metric for metric in run.columns if metric.removeprefix("eval_") not in CATALOG]
    return {metric: f"key{number}" for number, metric in enumerate(own, 1)}


_KEYED = ("evidence", "reductions", "metrics")  # what is named after metrics; all other names are those of the record


def _without(keys: dict[str, str], value: Any, name: str = "") -> Any:
    """A record in which the user's own keys are replaced: as whole names, and as words of sentences."""
    if isinstance(value, dict):
        renamed = keys if name in _KEYED else {}
        return {renamed.get(key, key): _without(keys, one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(keys, one, name) for one in value]
    if not isinstance(value, str) or (" " not in value and name not in _KEYED):
        return value
    longest_first = sorted(keys, key=len, reverse=True)
    pattern = rf"(?<![\w/])(?:{'|'.join(map(re.escape, longest_first))})(?![\w/])"
    return re.sub(pattern, lambda found: keys[found[0]], value) if keys else value


_TEXTS = ("run_id", "path", "notes", "acknowledged")


def _result(result: Result, name: str) -> dict[str, Any]:
    """The judgement, without paths, notes and the user's own keys."""
    found = {key: value for key, value in result.to_dict().items() if key not in _TEXTS}
    coverage = dict(found["coverage"])
    coverage["unmapped"] = len(coverage.get("unmapped", ()))
    coverage["metrics"] = sorted(metric for metric in coverage.get("metrics", {}) if "/" not in metric)
    return {**found, "run_id": name, "coverage": coverage}


def _settings(run: Run) -> dict[str, Any]:
    """The knobs of the training that are numbers."""
    return {knob: value for knob, value in run.config.items() if isinstance(value, (bool, int, float))}
