"""Compare runs with the first of them: how their settings differ, where they part ways, and where each of them ended.

A difference counts when it lasts and is larger than what seeds of one setting show. With --group-by, runs that share a setting
are compared as one group, by their mean and the spread between them.

Exit status: 0 compared, 2 could not be read or wrong usage.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rldk.cli.options import add_json, add_reading, judge_given
from rldk.cli.output import console, print_json, show_not_judged, table, verdict_text
from rldk.core.text import clean, counted

if TYPE_CHECKING:
    from rich.console import Console

    from rldk.comparison import Comparison

EXAMPLES = """
rldk compare out/healthy.jsonl out/broken.jsonl
rldk compare runs/ --group-by config.lr
rldk compare runs/ --baseline seed_1 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="RUN", help="files, folders or globs; others are compared with the first run")
    parser.add_argument("--group-by", metavar="SETTING", help="compare groups of runs that share this setting, such as config.lr")
    parser.add_argument("--baseline", metavar="RUN_ID", help="the run that others are compared with (default: the first)")
    add_json(parser, "the comparison")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.comparison import compare_results

    judged = judge_given(args, args.paths)
    results = list(judged)
    if args.baseline:
        base = judged[args.baseline]
        results = [base, *(result for result in results if result is not base)]
    found = compare_results(results, args.group_by)
    if args.json:
        print_json({**found.to_dict(), "passed_over": judged.not_judged()})
    else:
        _show(found)
        show_not_judged(judged.passed_over, 5)
    return 2 if judged.unread else 0


def _show(found: Comparison) -> None:
    out = console()
    _show_groups(out, found)
    out.print("\nWhere they part", style="bold")
    for line in [*found.sentences(), *found.notes()]:
        out.print(f"  {clean(line, 800)}")
    _show_settings(out, found)
    _show_ends(out, found)


def _show_groups(out: Console, found: Comparison) -> None:
    from rldk.present.incidents import cause_line

    rows = []
    for group in found.groups:
        worst = next((result.worst for result in group.results if result.verdict == group.verdict and result.worst), None)
        cause = cause_line(worst, group.results[0].reason)
        runs = clean(group.name) if len(group.results) == 1 else f"{clean(group.name)} ({counted(len(group.results), 'run')})"
        rows.append((verdict_text(group.verdict), runs, str(group.last_step), cause))
    out.print(table(("verdict", "run", "last step", "cause"), rows, right=("last step",)))


def _show_settings(out: Console, found: Comparison) -> None:
    from rldk.present.comparison import settings_rows

    names = [clean(group.name, 24) for group in found.groups]
    rows = settings_rows(found)
    out.print("\nSettings that differ", style="bold")
    if rows:
        out.print(table(("setting", *names), rows, right=names))
    elif not found.unknown_settings:
        out.print("  none")
    if found.unknown_settings:
        out.print(f"  not in the log of {', '.join(clean(name, 40) for name in found.unknown_settings)}", style="dim")


def _show_ends(out: Console, found: Comparison) -> None:
    from rldk.present.comparison import ends_rows

    names = [clean(group.name, 24) for group in found.groups]
    out.print("\nWhere each ended (the median of the last five rows)", style="bold")
    out.print(table(("metric", *names), ends_rows(found), right=names))
