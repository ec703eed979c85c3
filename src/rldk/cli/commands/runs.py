"""List the runs of an index (`rldk index`), all of them or those that fulfil a condition in SQL.

    rldk runs out --where "verdict = 'critical' and config.lr > 1e-5" --sort "lost_share desc"

A setting is written config.NAME, by any name that a framework gives it. Exit status: 0, or 2 for wrong usage.
"""

from __future__ import annotations

import argparse
from typing import Any

from rldk.cli.options import add_index, add_json, indexed_runs
from rldk.cli.output import console, print_json, sparkline, table, verdict_text
from rldk.core.text import clean, counted, short_number

EXAMPLES = """
rldk runs
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_index(parser)
    parser.add_argument("--sort", default="", metavar="SQL", help="the order, such as 'ended desc' (default: the worst first)")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N runs")
    add_json(parser, "the runs with all their columns")


def run(args: argparse.Namespace) -> int:
    rows = indexed_runs(args, order=args.sort, limit=args.limit)
    if args.json:
        print_json({"runs": rows})
    else:
        _show(rows)
    return 0


def _show(rows: list[dict[str, Any]]) -> None:
    from rldk.comparison.grouping import shown_value

    out = console()
    differing = _differing_settings(rows)
    headings = ("verdict", "run", "events", "reward", "", "KL", "since step", "cause", *differing)
    cells = []
    for row in rows:
        curve = [float("nan") if value is None else value for value in row["reward_curve"] or ()]
        cells.append((
            verdict_text(row["verdict"]), clean(row["name"]), str(row["events"]),
            short_number(row["reward"]), sparkline(curve, 12), short_number(row["kl"]),
            "" if row["onset_step"] is None else str(row["onset_step"]), clean(row["cause_title"] or ""),
            *(clean(shown_value(row[f"config.{name}"]), 30) for name in differing),
        ))  # fmt: skip
    out.print(table(headings, cells, right=("events", "reward", "KL", "since step"), unwrapped=("verdict", "")))
    out.print(f"\n{counted(len(rows), 'run')}", style="dim")


def _differing_settings(rows: list[dict[str, Any]], most: int = 4) -> list[str]:
    """The settings in which the runs differ, as far as there is room: knobs first."""
    from rldk.core.knobs import KNOBS

    names = [key.removeprefix("config.") for key in rows[0] if key.startswith("config.")] if rows else []
    differ = [name for name in names if len({row[f"config.{name}"] for row in rows}) > 1 and name in KNOBS]
    return sorted(differ, key=list(KNOBS).index)[:most]
