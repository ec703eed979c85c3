"""Write a page about runs: verdict, incidents marked in the curves, scores, coverage. One HTML file that needs no network.

With more than 24 logs, the page lists all runs and shows the worst 24 in detail. If the folder has an index (`rldk index`), only
logs that are new or have changed are judged for the table.

Exit status: 0 the page was written, 1 something is critical and --fail-on asked for it, 2 nothing could be read or wrong usage.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.cli.options import (
    add_fail_on,
    add_json,
    add_reading,
    exit_status,
    judge_given,
    read_config,
    read_paths,
    reading_of,
)  # fmt: skip
from rldk.cli.output import console, print_json, while_read
from rldk.cli.progress import copy_bar, count_bar
from rldk.core.errors import ReadError
from rldk.core.text import clean
from rldk.storage.places import shown_in

if TYPE_CHECKING:
    from rldk.judge.results import Results
    from rldk.report.gather import Gathered

_IN_SUMMARY = ("reward", "kl", "entropy", "gradients")
_LISTED = 20


EXAMPLES = """
rldk report out/demo -o report.html
rldk report out/run.jsonl --png plots --markdown summary.md
rldk report sweep/ --group-by config.lr        mean and band of the runs that share a setting
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
    parser.add_argument(
        "--group-by", metavar="SETTING",
        help="begin with groups of runs that share a setting, such as config.lr; config: all settings but the seed",
    )  # fmt: skip
    add_json(parser, "what was written, with each verdict,")
    add_fail_on(parser, "never")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.present.plots.source import is_timed
    from rldk.report import Case, markdown, page, write_pictures, write_report

    found = gather(args)
    target = read_config(args).kl_target
    axis = args.axis if all(is_timed(result.run.wall_time) for result in found.results) else "step"
    cases = [Case(result, target, axis=axis) for result in found.results]
    if axis != args.axis and not args.json:
        with while_read():
            console().print("One of the logs has no times, so the x axis shows steps.", style="dim")
    content = page(cases, found.passed_over, title=args.title, others=found.others, group_by=args.group_by)
    written: dict[str, Any] = {"html": str(write_report(args.output, content))}
    pictures = write_pictures(args.png, cases) if args.png else []
    if args.png:
        written["png"] = [str(path) for path in pictures]
    if args.markdown:
        links = [_link_from(args.markdown, path) for path in pictures if path.stem.endswith(_IN_SUMMARY)]
        written["markdown"] = str(write_report(args.markdown, markdown(cases, found.passed_over, links[:8], found.others)))
    with while_read():
        if args.json:
            verdicts = [{"run_id": name, "verdict": verdict} for name, verdict in found.verdicts]
            passed_over = [{"path": path, "reason": shown_in(reason)} for path, reason in found.passed_over]
            print_json({"written": written, "runs": verdicts, "passed_over": passed_over})
        else:
            _show(written, found)
    failing = (result.open_verdict for result in found.results)
    others = (str(row["verdict"]) for row in found.others)
    return exit_status((*failing, *others), args.fail_on) if found.verdicts else 2


def gather(args: argparse.Namespace) -> Gathered:
    """Judge as `rldk scan` does, but list what cannot be read, even if that is everything; of many runs, use the index."""
    from rldk.ingest.paths import expand
    from rldk.ingest.read import reason_for
    from rldk.report.gather import gather_many, is_many, split

    existing: list[Path] = []
    missing: list[tuple[str, str]] = []
    for path in args.paths:
        try:
            with copy_bar() as on_bytes:
                existing += expand(path, on_bytes)
        except ReadError as error:
            missing.append((path, reason_for(error, Path(path))))
    if is_many(existing, args.adapter):
        with count_bar() as advance:
            found = gather_many(existing, reading_of(args), on_log=advance)
    else:
        found = split(_judge_all(args, [str(path) for path in existing]))
    found.passed_over += missing
    return found


def _judge_all(args: argparse.Namespace, paths: list[str]) -> Results:
    from rldk.ingest.read import reason_for
    from rldk.judge.results import Results

    try:
        return judge_given(args, paths) if paths else Results()
    except ReadError as error:
        reasons = [str(error)] if len(paths) == 1 else [_reason(args, path) for path in paths]
        found = [(Path(path), reason_for(why, Path(path))) for path, why in zip(paths, reasons, strict=True)]
        return Results(passed_over=found)


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


def _show(written: dict[str, Any], found: Gathered) -> None:
    from rldk.present.verdicts import counts_in_words

    out = console()
    for result in found.results[:_LISTED]:
        out.print(f"{result.verdict:8}  {clean(result.run.run_id)}: {clean(result.reason)}")
    if found.others or len(found.results) > _LISTED:
        out.print(counts_in_words(Counter(verdict for _, verdict in found.verdicts)))
    if found.unchanged:
        out.print(f"{found.unchanged:,} logs from the index, {found.judged:,} judged for the overview", style="dim")
    for path, reason in found.passed_over[:5]:
        out.print(f"not judged: {clean(path)}: {clean(shown_in(reason))}", style="dim")
    out.print(f"wrote {clean(written['html'], 1000)}")
    if "png" in written:
        out.print(f"wrote {len(written['png'])} PNG files")
    if "markdown" in written:
        out.print(f"wrote {clean(written['markdown'], 1000)}")
