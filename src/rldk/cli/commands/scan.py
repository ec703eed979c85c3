"""Judge runs of any framework: what went wrong, since when, why, and what to do about it.

Exit status: 0 nothing critical, 1 something critical (--fail-on changes both), 2 could not be read or wrong usage. Of several
files, those that can be read are judged, and the others are listed.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_fail_on, add_jobs, add_json, add_reading, exit_status, judge_in_parallel
from rldk.cli.output import (
    console,
    curves_table,
    print_json_line,
    print_results_json,
    show_not_judged,
    table,
    verdict_text,
    while_read,
)
from rldk.core.errors import UsageError
from rldk.core.text import clean, counted, duration, in_words
from rldk.core.verdicts import ranking

if TYPE_CHECKING:
    from rich.console import Console

    from rldk.judge.incidents.incident import Incident
    from rldk.judge.result import Result
    from rldk.judge.results import Results


EXAMPLES = """
rldk scan out/my_run                           one run, or all runs of a folder
rldk scan runs/ --summary --sort health        only the ranking and the counts
rldk scan runs/ --top 3                        the three worst in detail
rldk scan run.jsonl --field-map my_kl=kl_mean  a key of your own
rldk scan runs/ --json --fail-on warning       for programs
rldk scan runs/ --json-lines | my_program      one line per run, as soon as it is judged
"""

_FEW_HEALTHY = 3

SORTS: dict[str, Callable[[Result], Any]] = {
    "verdict": lambda result: ranking(result.verdict, len(result.anomalies)),
    "name": lambda result: result.run.run_id,
    "events": lambda result: -len(result.run),
    "step": lambda result: result.worst.step if result.worst else float("inf"),
    "health": lambda result: result.scores.get("overall_health", 2.0),
}
"""The orders of the ranking: the worst, the longest, the earliest incident, or the least healthy first; or by name."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a glob")
    add_json(parser, "the judgement")
    parser.add_argument(
        "--json-lines", action="store_true",
        help="print each run as a JSON object on its own line as soon as it is judged, and a summary on the last line",
    )  # fmt: skip
    add_fail_on(parser)
    add_reading(parser)
    add_jobs(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="list anomalies, outlook, healthy runs, inactive detectors")
    parser.add_argument("--summary", action="store_true", help="print only the ranking and the summary, no run in detail")
    parser.add_argument("--top", type=int, metavar="N", help="print only the N worst runs in detail (all are counted and ranked)")
    parser.add_argument(
        "--sort", choices=tuple(SORTS), default="verdict", help="the order of the ranking (default: verdict, the worst first)"
    )


def run(args: argparse.Namespace) -> int:
    if args.top is not None and args.top < 0:
        raise UsageError(f"Expected --top to be at least 0, got {args.top}.")
    if args.json and args.json_lines:
        raise UsageError("Expected --json or --json-lines, got both.")
    begin = time.monotonic()
    judged = judge_in_parallel(args, args.paths, _print_line if args.json_lines else None)
    with while_read():
        if args.json_lines:
            _print_last_line(judged)
        elif args.json:
            print_results_json(judged)
        else:
            _show(judged, args, time.monotonic() - begin)
    return exit_status((result.open_verdict for result in judged), args.fail_on) or (2 if judged.unread else 0)


def _print_line(result: Result) -> None:
    """A run, as the list `runs` of `--json` has it."""
    print_json_line(result.to_dict())


def _print_last_line(judged: Results) -> None:
    """What is only known at the end. A run that was printed and is the beginning of a longer one is among `passed_over`."""
    print_json_line({"summary": {"runs": len(judged), "verdicts": judged.counts(), "passed_over": judged.not_judged()}})


def _show(judged: Results, args: argparse.Namespace, seconds: float) -> None:
    """Each run that has something to report, the worst first; then the ranking and the summary, nearest to the prompt."""
    out = console()
    results = sorted(judged.results, key=SORTS["verdict"])
    several = len(results) > 1
    told = [result for result in results if not several or result.incidents or result.machine]
    shown = [] if args.summary else told if args.top is None else told[: args.top]
    for result in shown:
        _show_run(out, result, args.verbose)
    if several or args.summary:
        if shown:
            out.print()
        _show_ranking(out, sorted(results, key=SORTS[args.sort]), args.verbose)
    show_not_judged(judged.passed_over, None if args.verbose else 5)
    out.print()
    _show_summary(out, judged, args.paths, seconds)


def _show_summary(out: Console, judged: Results, paths: Sequence[str], seconds: float) -> None:
    """`10 critical · 7 warnings · 23 healthy · 3.4 s · next: rldk report …`."""
    from rich.text import Text

    from rldk.present.verdicts import STYLES, verdict_words

    parts: list[Any] = []
    for verdict, count in judged.counts().items():
        words = counted(count, "warning") if verdict == "warning" else f"{count:,} {verdict_words(verdict)}"
        parts += [(words, STYLES[verdict]), " · "]
    if judged.passed_over:
        parts += [(f"{len(judged.passed_over):,} not judged", "dim"), " · "]
    acknowledged = sum(result.open_verdict != result.verdict for result in judged)
    if acknowledged:
        parts += [(f"{acknowledged:,} acknowledged", "dim"), " · "]
    given = shlex.join(paths[:2]) + (" …" if len(paths) > 2 else "")
    out.print(Text.assemble(*parts, (f"{duration(seconds)} · next: rldk report {clean(given, 120)}", "dim")))


def _show_ranking(out: Console, results: list[Result], verbose: bool) -> None:
    """A row for each run; those that are healthy in one line, unless they were asked for."""
    from rich.text import Text

    from rldk.present.incidents import recovered

    rows = []
    folded = [] if verbose else [result for result in results if result.verdict == "healthy"]
    for result in results if len(folded) <= _FEW_HEALTHY else [one for one in results if one.verdict != "healthy"]:
        worst = result.worst
        known = " (acknowledged)" if worst and result.acknowledgement_of(worst) else ""
        rows.append((
            verdict_text(result.verdict),
            clean(result.run.run_id),
            str(len(result.run)),
            str(worst.step) if worst else "",
            f"{worst.title}{recovered(worst)}{known}" if worst else result.reason,
        ))  # fmt: skip
    if rows:
        out.print(table(("verdict", "run", "events", "since step", "cause"), rows, right=("events", "since step")))
    if len(folded) > _FEW_HEALTHY:
        names = ", ".join(clean(result.run.run_id, 40) for result in folded[:4])
        out.print(Text.assemble(verdict_text("healthy"), f"  {len(folded):,} runs: {names} … (-v lists them)"))


def _show_run(out: Console, result: Result, verbose: bool) -> None:
    from rich.text import Text

    from rldk.ingest.unmapped_keys import unplaced
    from rldk.present.verdicts import STYLES

    run = result.run
    out.print()
    now = {result.verdict: "", "recovered": " (recovered)"}.get(result.state, f" ({result.state} now)")
    out.print(Text.assemble((result.verdict.upper(), STYLES[result.verdict]), f"{now}  ", (clean(run.run_id), "bold")))
    span = f"steps {run.steps[0]}–{run.steps[-1]}" if len(run) else "no steps"
    read = run.framework or run.adapter
    lost = f"; {counted(result.skipped_lines, 'line')} skipped" if result.skipped_lines else ""
    out.print(f"{counted(len(run), 'event')}, {span}, read as {read}; {result.reason}{lost}", style="dim")
    out.print(f"coverage {result.coverage.level}: {result.coverage.sentence}", style="dim")
    if result.scores:
        out.print(" · ".join(_scores(result)), style="dim")
    marks = {incident.index: incident.step for incident in result.incidents}
    if (curves := curves_table(run, out.width, marks)) is not None:
        out.print()
        out.print(curves)
    for incident in result.incidents:
        _show_incident(out, incident, result)
    _show_machine(out, result)
    _show_notes(out, [*result.notes, *unplaced(run)])
    if verbose:
        _show_details(out, result)


def _scores(result: Result) -> list[str]:
    """The main scores as they are now, with what they were at worst where that is lower."""
    from rldk.present.verdicts import MAIN_SCORES, at_worst

    now = result.scores
    shown = []
    for name in (name for name in MAIN_SCORES if name in now):
        lower = at_worst(now[name], result.worst_scores.get(name))
        shown.append(f"{in_words(name)} {now[name]:.2f}" + (f" ({lower})" if lower else ""))
    return shown


def _show_incident(out: Console, incident: Incident, result: Result) -> None:
    from rich.text import Text

    from rldk.present.incidents import accepted, last_good, may_also_be, recovered
    from rldk.present.verdicts import STYLES

    out.print()
    severity = (f"{incident.severity} ", STYLES[incident.severity])
    out.print(Text.assemble(severity, f"at step {incident.step}: ", (incident.title, "bold"), (recovered(incident), "green")))
    for heading, reason in accepted(incident, result):
        out.print(f"  {heading}: {clean(reason, 300)}", style="dim")
    for seen in incident.evidence:
        out.print(f"  {clean(seen, 300)}")
    if incident.rivals:
        out.print(f"  It may also be: {may_also_be(incident)}.", style="dim")
    out.print(f"  What to do: {incident.advice}")
    out.print(f"  Last good step: {last_good(incident)}.")
    if more := _more(incident, result):
        out.print(f"  More: {more}", style="dim")


def _more(incident: Incident, result: Result) -> str:
    """The command that explains the cause, and the detectors that found it, which it explains too; empty if it knows none."""
    from rldk.present.explain_pages import page_names

    known = page_names()
    types = dict.fromkeys(result.anomalies[number].type for number in incident.anomalies)
    found = [kind for kind in types if kind in known]
    page = incident.cause if incident.cause in known else next(iter(found), "")
    if not page:
        return ""
    return f"rldk explain {page}" + (f" (found by {', '.join(found)})" if found and found != [page] else "")


def _show_machine(out: Console, result: Result) -> None:
    if result.machine:
        out.print("\nMachine (not part of the verdict)", style="bold")
    for finding in result.machine:
        over = "" if finding.cleared_index is None else " (over)"
        out.print(f"  step {finding.step}{over}: {clean(finding.message, 300)} {finding.advice}")


def _show_notes(out: Console, notes: list[str]) -> None:
    if notes:
        out.print("\nWorth knowing", style="dim")
    for note in notes:
        out.print(f"· {clean(note, 400)}", style="dim")


def _show_details(out: Console, result: Result) -> None:
    """What to expect, every anomaly, and the detectors that are inactive."""
    from rldk.detectors.run.user_limit import limited_metric
    from rldk.judge.acknowledgements import is_acknowledged
    from rldk.judge.outlook import outlook

    if sentences := outlook(result):
        out.print("\nOutlook", style="dim")
    for sentence in sentences:
        out.print(f"· {sentence}", style="dim")
    if result.anomalies:
        rows = []
        for found in result.anomalies:
            cleared = "" if found.cleared_index is None else str(found.cleared_index)
            limit = f": {metric}" if (metric := limited_metric(found)) else ""
            known = " (acknowledged)" if is_acknowledged(found, result.acknowledged) else ""
            rows.append((str(found.step), str(found.index), found.severity, f"{found.type}{limit}{known}", cleared))
        out.print()
        out.print(table(("step", "index", "severity", "type", "cleared at"), rows, right=("step", "index", "cleared at")))
    if result.coverage.inactive:
        out.print("\nInactive, with the metric that is not logged:", style="dim")
    for name, missing in result.coverage.inactive:
        out.print(f"  {name}: {', '.join(missing)}", style="dim")
