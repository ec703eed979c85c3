"""Read runs of any framework into one table, and report what was read, what was skipped, and which metric each key became."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_json, add_reading, read_paths
from rldk.cli.output import console, curves_table, print_json, some_of, table
from rldk.core.text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from rldk.ingest.read import Ingested


EXAMPLES = """
rldk ingest out/demo -o runs.csv
rldk ingest out/run.jsonl --explain
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a glob")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rows to FILE: .csv, .parquet or .jsonl")
    add_reading(parser, judged=False)
    parser.add_argument("--explain", action="store_true", help="show which adapter was chosen and why, and what each key became")
    add_json(parser, "the account")


def run(args: argparse.Namespace) -> int:
    from rldk.ingest.export import check_output, write_runs

    output = check_output(Path(args.output)) if args.output else None
    result = read_paths(args, args.paths)
    if output is not None:
        write_runs(result, output)
    account = _account(result, output)
    if args.json:
        print_json(account)
    else:
        _show(result, account, args.explain)
    return 2 if result.unread else 0


def _account(result: Ingested, output: Path | None) -> dict[str, Any]:
    return {
        "files": [
            {
                "path": report.path,
                "adapter": report.adapter,
                "why": report.why,
                "framework": report.framework,
                "skipped_lines": report.problems.total,
                "skipped": [{"line": line, "reason": reason} for line, reason in report.problems.skipped],
                "damage": report.problems.damage,
            }
            for report in result.files
        ],
        "runs": [
            {
                "run_id": run.run_id,
                "path": run.path,
                "adapter": run.adapter,
                "framework": run.framework,
                "kind": run.kind,
                "rows": len(run),
                "first_step": int(run.steps[0]),
                "last_step": int(run.steps[-1]),
                "metrics": run.coverage.metrics,
                "reductions": run.coverage.reductions,
                "duplicates": run.coverage.duplicates,
                "unmapped": run.coverage.unmapped,
                "not_judged": run.coverage.not_judged,
                "notes": run.notes,
            }
            for run in result.runs
        ],
        "passed_over": [{"path": path, "reason": reason} for path, reason in result.passed_over],
        "output": output,
    }


def _show(result: Ingested, account: dict[str, Any], explain: bool) -> None:
    out = console()
    headings = ("run", "read as", "kind", "rows", "steps", "metrics", "unrecognised")
    rows = [
        (
            clean(run["run_id"]), clean(run["framework"] or run["adapter"]), run["kind"], str(run["rows"]),
            f"{run['first_step']}–{run['last_step']}", str(len(run["metrics"])), str(len(run["unmapped"])),
        )
        for run in account["runs"]
    ]  # fmt: skip
    out.print(table(headings, rows, right=("rows", "metrics", "unrecognised")))
    if len(result.runs) == 1 and (curves := curves_table(result.runs[0], out.width)) is not None:
        out.print()
        out.print(curves)
    _show_remarks(out, account)
    if explain:
        _show_routes(out, account)
    if account["output"]:
        out.print(f"\nwrote {sum(run['rows'] for run in account['runs'])} rows to {clean(account['output'])}")


def _show_remarks(out: Console, account: dict[str, Any]) -> None:
    remarks: dict[str, list[str]] = {}
    for file in account["files"]:
        path = clean(file["path"])
        for entry in file["skipped"][:3]:
            remarks.setdefault(f"line {entry['line']} skipped: {clean(entry['reason'])}", []).append(path)
        if file["skipped_lines"] > 3:
            remarks.setdefault(f"{file['skipped_lines']} lines skipped in all", []).append(path)
        if file["damage"]:
            remarks.setdefault(clean(file["damage"]), []).append(path)
    for run in account["runs"]:
        name = clean(run["run_id"])
        for note in run["notes"]:
            remarks.setdefault(clean(note), []).append(name)
        if run["unmapped"]:
            shown = some_of([clean(key, 60) for key in run["unmapped"]], 6)
            remarks.setdefault(f"unrecognised keys: {shown} (map them with --field-map KEY=METRIC)", []).append(name)
    for entry in account["passed_over"]:
        remarks.setdefault(f"not read: {clean(entry['reason'])}", []).append(clean(entry["path"]))
    if remarks:
        out.print()
    for remark, whose in remarks.items():
        out.print(f"· {some_of(whose, 1)}: {remark}")


def _show_routes(out: Console, account: dict[str, Any]) -> None:
    from rldk.core.catalog import entry_of

    for file in account["files"]:
        out.print(f"\n{clean(file['path'])}: read by the adapter {file['adapter']!r}: {clean(file['why'])}")
    for run in account["runs"]:
        out.print(f"\n{clean(run['run_id'])}")
        rows = []
        for metric, key in run["metrics"].items():
            entry = entry_of(metric)
            rows.append((clean(key), clean(metric), entry.unit if entry else "", run["reductions"].get(metric, "")))
        rows += [(clean(key), f"(another {metric})", "", "") for key, metric in run["duplicates"].items()]
        rows += [(clean(key), "(known, not judged)", "", "") for key in run["not_judged"]]
        rows += [(clean(key), "–", "", "") for key in run["unmapped"]]
        out.print(table(("key", "metric", "unit", "reduced over"), rows))
