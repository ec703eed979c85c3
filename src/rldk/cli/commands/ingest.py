"""Read runs of any framework into one table, and say what was read, what was skipped, and which key went where."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rldk.cli.options import add_reading, parse_field_map
from rldk.cli.output import console, print_json, progress_bar, sparkline
from rldk.core.text import clean, short_number

SHOWN = ("reward_mean", "kl_mean", "entropy_mean", "loss", "grad_norm", "policy_grad_norm", "value_loss", "rollout_length_mean")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a glob")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rows to FILE: .csv, .parquet or .jsonl")
    add_reading(parser, judged=False)
    parser.add_argument("--explain", action="store_true", help="tell which adapter was chosen and why, and where each key went")
    parser.add_argument("--json", action="store_true", help="print the account as one JSON object")


def run(args: argparse.Namespace) -> int:
    from rldk.ingest import read_runs
    from rldk.ingest.export import check_output, write_runs
    from rldk.ingest.paths import expand, size_of

    output = check_output(Path(args.output)) if args.output else None
    paths = expand(args.paths)
    with progress_bar(size_of(paths)) as progress:
        fields = parse_field_map(args.field_map)
        result = read_runs(paths, adapter_hint=args.adapter, field_map=fields, progress=progress, lenient=True)
    if output is not None:
        write_runs(result, output)
    account = _account(result, output)
    if args.json:
        print_json(account)
    else:
        _show(result, account, args.explain)
    return 2 if result.unread else 0


def _account(result: Any, output: Path | None) -> dict[str, Any]:
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
                "notes": run.notes,
            }
            for run in result.runs
        ],
        "passed_over": [{"path": path, "reason": reason} for path, reason in result.passed_over],
        "output": output,
    }


def _show(result: Any, account: dict[str, Any], explain: bool) -> None:
    from rich.table import Table

    out = console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("run", "read as", "kind", "rows", "steps", "metrics", "unplaced"):
        table.add_column(name, justify="right" if name in ("rows", "metrics", "unplaced") else "left", overflow="fold")
    for run in account["runs"]:
        table.add_row(
            clean(run["run_id"]), clean(run["framework"] or run["adapter"]), run["kind"], str(run["rows"]),
            f"{run['first_step']}–{run['last_step']}", str(len(run["metrics"])), str(len(run["unmapped"])),
        )  # fmt: skip
    out.print(table)
    if len(result.runs) == 1:
        _show_curves(out, result.runs[0])
    _show_remarks(out, account)
    if explain:
        _show_routes(out, account)
    if account["output"]:
        out.print(f"\nwrote {sum(run['rows'] for run in account['runs'])} rows to {clean(account['output'])}")


def _show_curves(out: Any, run: Any) -> None:
    """The metrics that matter most, each as a small curve from first to last."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for name in SHOWN:
        if name in run.columns:
            values = run.columns[name].values.tolist()
            there = [value for value in values if value == value] or [float("nan")]
            table.add_row(name, sparkline(values), f"{short_number(there[0])} → {short_number(there[-1])}")
    if table.row_count:
        out.print()
        out.print(table)


def _show_remarks(out: Any, account: dict[str, Any]) -> None:
    said: dict[str, list[str]] = {}
    for file in account["files"]:
        path = clean(file["path"])
        for entry in file["skipped"][:3]:
            said.setdefault(f"line {entry['line']} skipped: {clean(entry['reason'])}", []).append(path)
        if file["skipped_lines"] > 3:
            said.setdefault(f"{file['skipped_lines']} lines skipped in all", []).append(path)
        if file["damage"]:
            said.setdefault(clean(file["damage"]), []).append(path)
    for run in account["runs"]:
        name = clean(run["run_id"])
        for note in run["notes"]:
            said.setdefault(clean(note), []).append(name)
        if run["unmapped"]:
            shown = ", ".join(clean(key, 60) for key in run["unmapped"][:6])
            more = f" and {len(run['unmapped']) - 6} more" if len(run["unmapped"]) > 6 else ""
            said.setdefault(f"no place in the catalogue for {shown}{more} (--field-map KEY=METRIC gives one)", []).append(name)
    for entry in account["passed_over"]:
        said.setdefault(f"passed over: {clean(entry['reason'])}", []).append(clean(entry["path"]))
    if said:
        out.print()
    for remark, whose in said.items():
        out.print(f"· {whose[0] if len(whose) == 1 else f'{whose[0]} and {len(whose) - 1} more'}: {remark}")


def _show_routes(out: Any, account: dict[str, Any]) -> None:
    from rich.table import Table

    from rldk.core.catalog import entry_of

    for file in account["files"]:
        out.print(f"\n{clean(file['path'])}: read by the adapter {file['adapter']!r}: {clean(file['why'])}")
    for run in account["runs"]:
        out.print(f"\n{clean(run['run_id'])}")
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("key", "metric", "unit", "reduced over"):
            table.add_column(name, overflow="fold")
        for metric, key in run["metrics"].items():
            entry = entry_of(metric)
            table.add_row(clean(key), clean(metric), entry.unit if entry else "", run["reductions"].get(metric, ""))
        for key, metric in run["duplicates"].items():
            table.add_row(clean(key), f"(another {metric})", "", "")
        for key in run["unmapped"]:
            table.add_row(clean(key), "–", "", "")
        out.print(table)
