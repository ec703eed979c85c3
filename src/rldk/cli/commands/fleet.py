"""What happens over all runs of an index: causes by week, compute lost, configurations that fail, incidents across seeds.

A configuration is listed only if its failures are unlikely by chance, over all configurations that were compared; the interval
says how much its few runs can tell. Exit status: 0, or 2 for wrong usage.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rldk.cli.options import add_index, add_json, indexed_runs
from rldk.cli.output import console, print_json, some_of, sparkline, table
from rldk.core.text import clean, counted

if TYPE_CHECKING:
    from rich.console import Console

    from rldk.fleet.overview import Overview


EXAMPLES = """
rldk fleet runs/
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_index(parser)
    add_json(parser, "the overview")


def run(args: argparse.Namespace) -> int:
    from rldk.fleet.overview import overview_of

    overview = overview_of(indexed_runs(args))
    if args.json:
        print_json(overview.to_dict())
    else:
        _show(console(), overview)
    return 0


def _show(out: Console, overview: Overview) -> None:
    from rldk.fleet.overview import headline

    out.print(headline(overview), style="bold")
    if overview.causes:
        weeks = sorted({week for cause in overview.causes for week in cause["weeks"]})
        rows = [
            (str(cause["runs"]), clean(cause["title"]), sparkline([cause["weeks"].get(week, 0) for week in weeks]))
            for cause in overview.causes
        ]
        out.print()
        span = weeks[0] if len(weeks) == 1 else f"{weeks[0]} to {weeks[-1]}"
        out.print(table(("runs", "cause", f"by week, {span}"), rows, right=("runs",)))
    _show_configs(out, overview)
    if overview.incidents:
        lines = []
        for one in overview.incidents[:20]:
            onset = str(one.first_onset) if one.first_onset == one.last_onset else f"{one.first_onset}–{one.last_onset}"
            names = some_of([clean(name, 60) for name in one.names], 3)
            lines.append((one.verdict, clean(one.title), str(len(one.names)), onset, names))
        out.print()
        out.print(table(("verdict", "incident", "runs", "since step", "which"), lines, right=("runs", "since step")))


def _show_configs(out: Console, overview: Overview) -> None:
    out.print()
    if not overview.configs:
        compared = f"{counted(overview.compared, 'condition')} {'was' if overview.compared == 1 else 'were'} compared"
        out.print(f"No setting stands out: {compared}, and none fails more often than chance explains.", style="dim")
        return
    rows = [
        (
            clean(one.condition), f"{one.failed} of {one.runs}", f"{one.interval[0]:.0%}–{one.interval[1]:.0%}",
            f"{one.failed_others} of {one.others}", f"{one.chance:.2g}",
        )
        for one in overview.configs[:10]
    ]  # fmt: skip
    out.print(table(("configuration", "critical", "95 % interval", "other runs", "chance"), rows))
