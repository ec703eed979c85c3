"""Serve scan, compare and explain to an agent over the Model Context Protocol, on standard input and output.

It reads only below the given folders and changes nothing. Prompts and responses stay out unless --samples is given. An agent is
set up with the command `rldk mcp FOLDER`.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rldk._version import __version__
from rldk.core.errors import ReadError, RLDKError, UsageError, require
from rldk.core.files import strict
from rldk.core.verdicts import ranking
from rldk.storage.places import lies_within

EXAMPLES = """
rldk mcp out/runs
rldk mcp out/runs --samples
"""

INSTRUCTIONS = """\
rldk judges runs of reinforcement-learning fine-tuning from their logs. Begin with `list_runs`, then `scan` one of them. Read the
verdict together with the coverage: "healthy" with weak coverage means that little was logged. An incident has a cause, the step
since which it shows, the last good step, and advice. `explain` tells what an anomaly means and when it misfires; `compare` says
where runs part ways. Paths are relative to the folders that are served."""
MOST_ROWS = 200
MOST_SAMPLES = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a folder that may be read")
    parser.add_argument("--samples", action="store_true", help="let the agent read prompts and responses too")


def run(args: argparse.Namespace) -> int:
    from rldk.storage.copies import local_copies

    build_server(Folders(local_copies(folder) for folder in args.folders), args.samples).run("stdio")
    return 0


class Folders:
    """The folders that may be read. A path that leads out of them, by `..` or a link, is refused."""

    def __init__(self, folders: Iterable[str | Path]) -> None:
        self.roots = [Path(folder).resolve() for folder in folders]
        for root in self.roots:
            if not root.is_dir():
                raise ReadError(f"There is no folder {str(root)!r}. Give folders that hold runs.")

    def find(self, path: str) -> Path:
        """The file or folder of this name below one of the folders."""
        if "\0" in path or "://" in path:
            raise UsageError(f"Expected a path below the folders that are served, got {path!r:.200}.")
        for root in self.roots:
            found = (root / path).resolve()
            if found.is_relative_to(root) and found.exists():
                return found
        raise UsageError(f"There is no {path!r:.200} below the folders that are served. `list_runs` lists what there is.")

    def holds(self, path: str | Path) -> bool:
        """Whether a file or folder, with all that is in it and all links followed, is below one of the folders."""
        return lies_within(Path(path), self.roots)

    def name(self, path: str | Path) -> str:
        """A path relative to its folder."""
        found = Path(path).resolve()
        return next((str(found.relative_to(root)) for root in self.roots if found.is_relative_to(root)), found.name)


def build_server(folders: Folders, samples: bool = False) -> Any:
    """The server with its tools; `samples` adds the one that shows prompts and responses."""
    server_module: Any = require("mcp.server", extra="mcp", purpose="`rldk mcp`")
    types: Any = require("mcp.types", extra="mcp", purpose="`rldk mcp`")
    server = server_module.MCPServer("rldk", version=__version__, instructions=INSTRUCTIONS)
    tools = [list_runs, scan, compare, explain, *([read_samples] if samples else [])]
    for tool in tools:
        reads = types.ToolAnnotations(readOnlyHint=True, openWorldHint=False)
        server.add_tool(_bound(tool, folders), name=tool.__name__, description=tool.__doc__, annotations=reads)
    return server


def _bound(tool: Any, folders: Folders) -> Any:
    """A tool without its first argument, whose errors are told and not raised, and whose answer is strict JSON."""
    given = inspect.signature(tool, eval_str=True)
    parameters = list(given.parameters.values())[1:]

    def call(**arguments: Any) -> dict[str, Any]:
        try:
            return dict(strict(tool(folders, **arguments)))
        except RLDKError as error:
            return {"error": str(error)}

    described: Any = call  # what the library reads to describe the tool
    described.__signature__ = given.replace(parameters=parameters)
    described.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": dict[str, Any]}
    return described


def list_runs(folders: Folders, below: str = ".", most: int = 50) -> dict[str, Any]:
    """List the runs below a folder with their verdicts, the worst first."""
    from rldk.judge.results import judge_paths

    found = judge_paths(folders.find(below), lenient=True)
    results = [one for one in found.results if folders.holds(one.run.path)]
    results = sorted(results, key=lambda result: ranking(result.verdict, len(result.anomalies)))
    kept = results[: max(1, min(most, MOST_ROWS))]
    runs = [
        {
            "path": folders.name(one.run.path), "run_id": one.run.run_id, "verdict": one.verdict, "events": len(one.run),
            "cause": one.worst.title if one.worst else None, "since_step": one.worst.step if one.worst else None,
            "coverage": one.coverage.level,
        }
        for one in kept
    ]  # fmt: skip
    return {"runs": runs, "not_listed": len(results) - len(kept)}


def scan(folders: Folders, path: str) -> dict[str, Any]:
    """Judge the runs of a file or folder: verdict, incidents with cause and advice, scores, coverage. As `rldk scan --json`."""
    from rldk.judge.results import judge_paths

    found = judge_paths(folders.find(path), lenient=True).to_dict()
    runs = [run for run in found["runs"] if folders.holds(run["path"])]
    not_judged = [
        {"path": folders.name(one["path"]), "reason": one["reason"]} for one in found["passed_over"] if folders.holds(one["path"])
    ]
    return {"runs": [{**run, "path": folders.name(run["path"])} for run in runs], "passed_over": not_judged}


def compare(folders: Folders, a: str, b: str) -> dict[str, Any]:
    """Compare two runs: where they part ways, in which metric, how sure that is, and where each ended."""
    from rldk.comparison import compare_results
    from rldk.judge.results import judge_paths

    judged = [one for path in (a, b) for one in judge_paths(folders.find(path), lenient=True) if folders.holds(one.run.path)]
    found = compare_results(judged).to_dict()
    for group in found["groups"]:
        group["runs"] = [{**run, "path": folders.name(run["path"])} for run in group["runs"]]
    return {name: value for name, value in found.items() if name != "settings"}


def explain(folders: Folders, type: str) -> dict[str, Any]:
    """Tell what a type of anomaly catches, why it matters, when it misfires, and what to do; or what a cause means."""
    from rldk.present.explain_pages import page_of

    return dict(page_of(type).to_dict())


def read_samples(folders: Folders, path: str, most: int = 5) -> dict[str, Any]:
    """Read the latest prompts and responses that a run's event log holds."""
    from rldk.core.jsonio import loads
    from rldk.ingest.read import read_runs

    found: list[Any] = []
    for run in read_runs(folders.find(path)).runs:
        if not folders.holds(run.path):
            continue
        column = run.labels.get("samples")
        for step, cell in zip(run.steps.tolist(), column.cells() if column is not None else [], strict=False):
            if isinstance(cell, str):
                found.append({"run_id": run.run_id, "step": step, "samples": loads(cell.encode("utf-8", "replace"))})
    return {"samples": found[-max(1, min(most, MOST_SAMPLES)) :]}
