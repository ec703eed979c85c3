"""Write a page about runs: verdict, incidents marked in the curves, scores, coverage. One HTML file that needs no network.

Exit status: 0 the page was written, 1 something is critical and --fail-on asked for it, 2 nothing could be read or wrong usage.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_fail_on, add_json, add_reading, exit_status, judge_given, read_config, read_paths
from rldk.cli.output import console, print_json, while_read
from rldk.core.errors import ReadError
from rldk.core.text import clean

if TYPE_CHECKING:
    from rldk.judge.results import Results

_IN_SUMMARY = ("reward", "kl", "entropy", "gradients")


EXAMPLES = """
rldk report out/demo -o report.html
rldk report out/run.jsonl --png plots --markdown summary.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="RUN", help="a file, a folder or a glob; several runs are drawn over each other"
    )
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page (default: report.html)")
    parser.add_argument("--png", metavar="DIR", help="write every plot as a PNG file into this folder")
    parser.add_argument("--markdown", metavar="FILE", help="write a summary for a pull request")
    parser.add_argument("--title", default="", help="the title of the page (default: the run and its verdict)")
    parser.add_argument(
        "--axis", choices=("step", "hours"), default="step",
        help="the x axis of the curves: steps, or hours since the run began (default: step)",
    )  # fmt: skip
    add_json(parser, "what was written, with each verdict,")
    add_fail_on(parser, "never")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.present.plots.source import is_timed
    from rldk.report import Case, markdown, page, write_pictures, write_report

    judged = judge_what_can_be_read(args)
    target = read_config(args).kl_target
    axis = args.axis if all(is_timed(result.run.wall_time) for result in judged.results) else "step"
    cases = [Case(result, target, axis=axis) for result in judged.results]
    if axis != args.axis and not args.json:
        with while_read():
            console().print("One of the logs has no times, so the x axis shows steps.", style="dim")
    unread = [(str(path), reason) for path, reason in judged.passed_over]
    written: dict[str, Any] = {"html": str(write_report(args.output, page(cases, unread, title=args.title)))}
    pictures = write_pictures(args.png, cases) if args.png else []
    if args.png:
        written["png"] = [str(path) for path in pictures]
    if args.markdown:
        shown = [_link_from(args.markdown, path) for path in pictures if path.stem.endswith(_IN_SUMMARY)]
        written["markdown"] = str(write_report(args.markdown, markdown(cases, unread, shown[:8])))
    with while_read():
        if args.json:
            verdicts = [{"run_id": result.run.run_id, "verdict": result.verdict} for result in judged.results]
            print_json({"written": written, "runs": verdicts, "passed_over": judged.not_judged()})
        else:
            _show(written, judged)
    return exit_status(judged.verdicts, args.fail_on) if cases else 2


def judge_what_can_be_read(args: argparse.Namespace) -> Results:
    """Judge as `rldk scan` does, but list what cannot be read, even if that is everything."""
    from rldk.ingest.paths import expand
    from rldk.judge.results import Results

    existing: list[str] = []
    missing: list[tuple[Path, str]] = []
    for path in args.paths:
        try:
            expand(path)
            existing.append(path)
        except ReadError as error:
            missing.append((Path(path), str(error)))
    try:
        judged = judge_given(args, existing) if existing else Results()
    except ReadError as error:
        reasons = [str(error)] if len(existing) == 1 else [_reason(args, path) for path in existing]
        judged = Results(passed_over=[(Path(path), why) for path, why in zip(existing, reasons, strict=True)])
    judged.passed_over += missing
    return judged


def _reason(args: argparse.Namespace, path: str) -> str:
    """Why a path by itself cannot be read."""
    try:
        read_paths(args, [path])
    except ReadError as error:
        return str(error)
    return "It holds nothing that another path does not hold."


def _link_from(summary: str, path: Path) -> str:
    """A picture's path as the summary links to it."""
    return Path(os.path.relpath(path, Path(summary).parent)).as_posix()


def _show(written: dict[str, Any], judged: Results) -> None:
    out = console()
    for result in judged.results[:20]:
        out.print(f"{result.verdict:8}  {clean(result.run.run_id)}: {clean(result.reason)}")
    for path, reason in judged.passed_over[:5]:
        out.print(f"not judged: {clean(path)}: {clean(reason)}", style="dim")
    out.print(f"wrote {clean(written['html'], 1000)}")
    if "png" in written:
        out.print(f"wrote {len(written['png'])} PNG files")
    if "markdown" in written:
        out.print(f"wrote {clean(written['markdown'], 1000)}")
