"""Decide whether runs may pass, for continuous integration: by verdict, by where metrics ended, and against a baseline.

A run passes if its verdict is neither critical nor no_data (--fail-on changes that; acknowledged findings do not count), if each
metric of --max and --min ended within its limit (the median of the last five rows), and if it is not worse than the baseline
beyond the noise of seeds: neither in its verdict nor in a metric that has a direction of trouble.

Exit status: 0 passed, 1 failed, 2 could not be read or wrong usage.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rldk.cli.options import FAILING, add_fail_on, add_json, add_reading, judge_given
from rldk.cli.output import console, print_json, show_not_judged
from rldk.core.errors import UsageError
from rldk.core.text import clean, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rldk.comparison.gate import Check
    from rldk.judge.result import Result

EXAMPLES = """
rldk gate out/run.jsonl --max kl_mean=0.2 --min reward_mean=0.8
rldk gate out/run.jsonl --baseline main/run.jsonl --junit gate.xml --sarif gate.sarif
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="RUN", help="a file, a folder or a glob")
    parser.add_argument("--baseline", metavar="RUN", help="a run, or a folder of seeds, that the runs must not be worse than")
    for option, what in (("--max", "the most a metric may end at"), ("--min", "the least a metric must end at")):
        parser.add_argument(option, action="append", default=[], metavar="METRIC=VALUE", help=f"{what}; may be repeated")
    parser.add_argument("--junit", metavar="FILE", help="write the checks as JUnit XML")
    parser.add_argument("--sarif", metavar="FILE", help="write findings and failed checks as SARIF, for code scanning")
    add_json(parser, "the checks")
    add_fail_on(parser)
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.comparison.gate import check_run
    from rldk.core.files import write_json, write_text
    from rldk.present.ci_formats import junit, sarif

    baseline = list(judge_given(args, [args.baseline])) if args.baseline else []
    judged = judge_given(args, args.paths)
    highest, lowest = _limits(args.max, "--max", judged.results), _limits(args.min, "--min", judged.results)
    checks = [one for result in judged for one in check_run(result, FAILING[args.fail_on], highest, lowest, baseline)]
    if args.junit:
        write_text(args.junit, junit(checks))
    if args.sarif:
        write_json(args.sarif, sarif(checks, judged.results))
    passed = all(check.passed for check in checks)
    if args.json:
        print_json({"passed": passed, "checks": [check.to_dict() for check in checks], "passed_over": judged.not_judged()})
    else:
        _show(checks)
        show_not_judged(judged.passed_over, 5)
    return 1 if not passed else 2 if judged.unread else 0


def _limits(given: Sequence[str], option: str, results: Sequence[Result]) -> dict[str, float]:
    """`["kl_mean=0.2"]` as limits by canonical metric, or by a key of the runs' logs."""
    from rldk.comparison.gate import metric_name

    found = {}
    for pair in given:
        name, _, value = pair.rpartition("=")
        try:
            limit = float(value if name else "")
        except ValueError:
            raise UsageError(f"Expected {option} METRIC=VALUE, such as {option} kl_mean=0.2, got {pair!r}.") from None
        found[metric_name(name.strip(), results)] = limit
    return found


def _show(checks: Sequence[Check]) -> None:
    from rich.text import Text

    out = console()
    for check in checks:
        mark = ("passed", "green") if check.passed else ("failed", "bold red")
        name = (clean(check.name), "bold")
        out.print(Text.assemble(mark, f"  {clean(check.run_id)}  ", name, f": {clean(check.message, 400)}"))
    failed = sum(not check.passed for check in checks)
    out.print()
    if failed:
        out.print(f"{counted(failed, 'check')} of {len(checks)} failed", style="bold red")
    else:
        out.print(f"{counted(len(checks), 'check')} passed", style="green")
