"""Write a page about runs: verdict, incidents with their moments marked in the curves, scores, coverage. One file, no network.

Exit status: 0 the page was written, 1 something is critical and --fail-on asked for it, 2 nothing could be read or wrong usage.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from rldk.cli.commands.scan import judge_paths
from rldk.cli.options import add_fail_on, add_reading, exit_status
from rldk.cli.output import console, print_json, while_read
from rldk.core.errors import ReadError
from rldk.core.text import clean

_MENTIONED = ("reward", "kl", "entropy", "gradients")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="RUN", help="a file, a folder or a glob; several runs are laid over each other"
    )
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page (default: report.html)")
    parser.add_argument("--png", metavar="DIR", help="write every plot as a PNG file into this folder")
    parser.add_argument("--markdown", metavar="FILE", help="write a summary for a pull request")
    parser.add_argument("--title", default="", help="what the page is called (default: the run and its verdict)")
    parser.add_argument(
        "--axis", choices=("step", "hours"), default="step",
        help="what the curves lie along: steps, or the hours since the run began (default: step)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print what was written, with each verdict, as one JSON object")
    add_fail_on(parser, "never")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.judge.config import ScanConfig
    from rldk.present.plots.source import is_timed
    from rldk.report import Case, markdown, page, write_pictures, write_report

    judged, passed_over = judge_all(args)
    target = ScanConfig.from_yaml(args.config).kl_target if args.config else None
    axis = args.axis if all(is_timed(judgement.run.wall_time) for judgement, _ in judged) else "step"
    cases = [Case(judgement, skipped, target, axis=axis) for judgement, skipped in judged]
    if axis != args.axis and not args.json:
        with while_read():
            console().print("There are no times in one of the logs: the curves lie along steps.", style="dim")
    written: dict[str, Any] = {"html": str(write_report(args.output, page(cases, passed_over, title=args.title)))}
    pictures = write_pictures(args.png, cases) if args.png else []
    if args.png:
        written["png"] = [str(path) for path in pictures]
    if args.markdown:
        shown = [_beside(path, args.markdown) for path in pictures if path.stem.endswith(_MENTIONED)]
        written["markdown"] = str(write_report(args.markdown, markdown(cases, passed_over, shown[:8])))
    with while_read():
        if args.json:
            verdicts = [{"run_id": judgement.run.run_id, "verdict": judgement.verdict} for judgement, _ in judged]
            print_json({"written": written, "runs": verdicts, "passed_over": [{"path": p, "reason": r} for p, r in passed_over]})
        else:
            _tell(written, judged, passed_over)
    if not cases:
        return 2
    return exit_status((judgement.verdict for judgement, _ in judged), args.fail_on)


def judge_all(args: argparse.Namespace) -> tuple[list[tuple[Any, int]], list[tuple[str, str]]]:
    """Judge what can be read of the paths, as `rldk scan` does; one that cannot be read is listed and stops no other."""
    readable = list(args.paths)
    failed: list[tuple[str, str]] = []
    while readable:
        try:
            judged, passed_over = judge_paths(argparse.Namespace(**{**vars(args), "paths": readable}))
            return judged, [*((str(path), reason) for path, reason in passed_over), *failed]
        except ReadError as error:
            if len(readable) == 1:
                failed.append((readable.pop(), str(error)))
                break
        for path in list(readable):
            try:
                judge_paths(argparse.Namespace(**{**vars(args), "paths": [path]}))
            except ReadError as error:
                readable.remove(path)
                failed.append((path, str(error)))
    return [], failed


def _beside(path: Path, summary: str) -> str:
    """A picture's path as the summary links to it."""
    return Path(os.path.relpath(path, Path(summary).parent)).as_posix()


def _tell(written: dict[str, Any], judged: list[tuple[Any, int]], passed_over: list[tuple[str, str]]) -> None:
    out = console()
    for judgement, _ in judged[:20]:
        out.print(f"{judgement.verdict:8}  {clean(judgement.run.run_id)}: {clean(judgement.reason)}")
    for path, reason in passed_over[:5]:
        out.print(f"not judged: {clean(path)}: {clean(reason)}", style="dim")
    out.print(f"wrote {clean(written['html'], 1000)}")
    if "png" in written:
        out.print(f"wrote {len(written['png'])} PNG files")
    if "markdown" in written:
        out.print(f"wrote {clean(written['markdown'], 1000)}")
