"""Compare the checkpoints of a run, layer by layer: which layers moved, how far, and when something went wrong.

Give a folder with one checkpoint per step, or several checkpoints in the order in which to compare them: each one file, shards
with an index, or an adapter (LoRA). No checkpoint is loaded whole, and no code in a file is run.

Exit status: 0 nothing critical, 1 something critical (--fail-on changes both), 2 could not be read or wrong usage.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from math import isnan, nan
from pathlib import Path
from typing import Any

from rldk.cli.options import add_fail_on, add_json, exit_status
from rldk.cli.output import console, print_json, sparkline, table, verdict_text, while_read
from rldk.cli.progress import copy_bar, progress_bar
from rldk.core.errors import UsageError
from rldk.core.text import clean, in_words, short_number

_CURVE = 24


EXAMPLES = """
rldk checkpoints out/demo/broken_checkpoints
rldk checkpoints s3://bucket/run/checkpoints    copied first: only the files of weights
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a folder of checkpoints, or checkpoints in their order")
    add_json(parser, "the reports")
    parser.add_argument("--tensors", action="store_true", help="with --json: every tensor, not only every layer")
    parser.add_argument("-o", "--output", metavar="FILE", help="write one row per checkpoint to FILE (.csv)")
    parser.add_argument("--layers", type=int, default=8, metavar="N", help="how many layers to show (default: 8, 0: all)")
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.checkpoints import find_checkpoints, scan_checkpoints, write_summary
    from rldk.checkpoints.checkpoint import may_hold_weights
    from rldk.storage.copies import local_copies

    if args.output is not None and Path(args.output).suffix != ".csv":
        raise UsageError(f"Expected the output to end in .csv, got {args.output!r}.")
    if args.layers < 0:
        raise UsageError(f"Expected --layers to be 0 or more, got {args.layers}.")
    with copy_bar() as on_bytes:
        places = [local_copies(path, on_bytes, may_hold_weights, "weights") for path in args.paths]
    found = [one for path in places for one in find_checkpoints(path)]
    with progress_bar(_to_read([one.path for one in found])) as progress:
        reports = list(scan_checkpoints(found, _counting(progress, found[0].path.parent)))
    if args.output is not None:
        write_summary(args.output, reports)
    with while_read():
        if args.json:
            print_json({"checkpoints": [report.to_dict(tensors=args.tensors) for report in reports]})
        else:
            _show(reports, args.layers or None)
    return exit_status((report.verdict for report in reports), args.fail_on)


def _to_read(paths: list[Path]) -> int:
    """The bytes to read: each checkpoint, with the previous and the first beside it."""
    from rldk.checkpoints.checkpoint import weight_bytes

    return sum(min(number + 1, 3) * weight_bytes(path) for number, path in enumerate(paths))


def _counting(progress: Callable[[Path, int, int], None] | None, shown: Path) -> Callable[[int], None] | None:
    if progress is None:
        return None
    done = 0

    def on_read(read: int) -> None:
        nonlocal done
        done += read
        progress(shown, done, 0)

    return on_read


def _show(reports: list[Any], layers: int | None) -> None:
    out = console()
    readable = [report for report in reports if report.tensors]
    _show_table(out, reports)
    if len(readable) > 1:
        _show_layers(out, readable, layers)
    for problem, names in _stretches(reports):
        _show_problem(out, problem, names)
    notes = dict.fromkeys(note for report in reports for note in report.notes)
    if notes:
        out.print()
    for note in notes:
        out.print(f"· {clean(note, 400)}", style="dim")


def _show_table(out: Any, reports: list[Any]) -> None:
    numbers = ("health", "update", "drift", "changed", "norm", "not finite")
    rows = []
    for report in reports:
        rows.append((
            verdict_text(report.verdict),
            clean(report.path.name),
            "" if isnan(report.health_score) else f"{report.health_score:.2f}",
            _few(report.update_ratio),
            _few(report.drift_from_start),
            "" if isnan(report.changed_share) else f"{report.changed_share:.1%}",
            _few(report.norm),
            str(report.nonfinite) if report.tensors else "",
        ))  # fmt: skip
    out.print(table(("verdict", "checkpoint", *numbers), rows, right=numbers, unwrapped=numbers))
    out.print(
        "update: what changed since the previous checkpoint, in units of its norm; drift: the same since the first", style="dim"
    )


def _few(value: float) -> str:
    """Three digits; empty where it is not known."""
    return "" if isnan(value) else short_number(value, 3)


def _show_layers(out: Any, reports: list[Any], most: int | None) -> None:
    """The layers that have moved furthest from the start, each with the course of its updates."""
    last = reports[-1]
    ranked = sorted(last.layers, key=lambda layer: layer.drift_from_start if layer.drift_from_start > 0 else 0.0, reverse=True)
    courses = [{layer.name: layer.update_ratio for layer in report.layers} for report in reports[1:]]
    shown = ranked[:most]
    rows = []
    for layer in shown:
        course = sparkline([own.get(layer.name, nan) for own in courses], _CURVE)
        cells = [_few(value) for value in (layer.update_ratio, layer.drift_from_start, layer.norm_change_from_start)]
        rows.append((clean(layer.name, 60), course, *cells))
    numbers = ("last", "drift", "norm × first")
    out.print()
    out.print(table(("layer", "updates", *numbers), rows, right=numbers, unwrapped=("updates", *numbers)))
    if len(shown) < len(ranked):
        out.print(f"and {len(ranked) - len(shown)} layers that moved less (--layers 0 shows all)", style="dim")


def _stretches(reports: list[Any]) -> list[tuple[Any, list[str]]]:
    """The problems in the order in which they came, each with the checkpoints in a row that have it."""
    found: list[tuple[Any, list[str]]] = []
    open_now: dict[str, list[str]] = {}
    for report in reports:
        still: dict[str, list[str]] = {}
        for problem in report.problems:
            names = open_now.get(problem.type)
            if names is None:
                names = []
                found.append((problem, names))
            names.append(report.path.name)
            still[problem.type] = names
        open_now = still
    return found


def _show_problem(out: Any, problem: Any, names: list[str]) -> None:
    from rich.text import Text

    from rldk.present.verdicts import STYLES

    out.print()
    place = f"at {clean(names[0])}" if len(names) == 1 else f"from {clean(names[0])} to {clean(names[-1])}"
    severity = (f"{problem.severity} ", STYLES[problem.severity])
    out.print(Text.assemble(severity, f"{place}: ", (in_words(problem.type), "bold")))
    out.print(f"  {clean(problem.message, 400)}")
    out.print(f"  What to do: {clean(problem.advice, 400)}")
