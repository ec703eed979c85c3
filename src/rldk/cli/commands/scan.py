"""Judge runs of any framework: what went wrong, since when, why, and what to do about it.

Exit status: 0 nothing critical, 1 something critical (--fail-on changes both), 2 could not be read or wrong usage. Of several
files, those that can be read are judged, and the others listed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rldk.cli.options import add_fail_on, add_reading, exit_status, parse_field_map, read_config
from rldk.cli.output import console, print_json, progress_bar, sparkline, unicode_terminal, while_read
from rldk.core.text import clean, counted, in_words, short_number

CURVES = (
    "reward_mean",
    "reward_std",
    "kl_mean",
    "entropy_mean",
    "loss",
    "grad_norm",
    "policy_grad_norm",
    "value_loss",
    "rollout_length_mean",
)
_SHOWN = 5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a glob")
    parser.add_argument("--json", action="store_true", help="print the judgement as one JSON object")
    add_fail_on(parser)
    add_reading(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="list every anomaly, and the detectors that could not judge")


def run(args: argparse.Namespace) -> int:
    unread: list[Path] = []
    judged, passed_over = judge_paths(args, unread)
    with while_read():
        if args.json:
            print_json({
                "runs": [judgement.to_dict(skipped) for judgement, skipped in judged],
                "passed_over": [{"path": path, "reason": reason} for path, reason in passed_over],
            })  # fmt: skip
        else:
            show(judged, passed_over, args.verbose)
    return exit_status((judgement.verdict for judgement, _ in judged), args.fail_on) or (2 if unread else 0)


def judge_paths(
    args: argparse.Namespace, unread: list[Path] | None = None
) -> tuple[list[tuple[Any, int]], list[tuple[Path, str]]]:
    """Judge all runs below the paths; each with the number of lines of its file that were skipped.

    The second part is what was not judged, with the reason: a file that cannot be read is not a healthy run. Those that
    were asked for by name are put into `unread` too; one of several stops no other.
    """
    from rldk.ingest import read_runs
    from rldk.ingest.paths import expand, size_of
    from rldk.judge.scan import judge_run

    config = read_config(args)
    paths = expand(args.paths)
    with progress_bar(size_of(paths)) as progress:
        fields = parse_field_map(args.field_map)
        result = read_runs(paths, adapter_hint=args.adapter, field_map=fields, progress=progress, lenient=True)
    if unread is not None:
        unread += result.unread
    problems = {report.path: report.problems for report in result.files}
    judged = []
    for found in result.runs:
        own = problems.get(found.path)
        if own is not None and own.damage:
            found.notes.append(own.damage)
        judged.append((judge_run(found, config), own.total if own is not None else 0))
    return judged, result.passed_over


def show(judged: list[tuple[Any, int]], passed_over: list[tuple[Path, str]], verbose: bool) -> None:
    """The ranking, the worst first, then each run that has something to tell."""
    from rldk.present.verdicts import ranking

    out = console()
    judged = sorted(judged, key=lambda pair: ranking(pair[0].verdict, len(pair[0].anomalies)))
    if len(judged) > 1:
        _show_ranking(out, [judgement for judgement, _ in judged])
    for judgement, skipped in judged:
        if len(judged) == 1 or judgement.incidents or judgement.machine:
            _show_run(out, judgement, skipped, verbose)
    if passed_over:
        show_passed_over(out, passed_over, verbose)


def show_passed_over(out: Any, passed_over: list[tuple[Path, str]], verbose: bool = True) -> None:
    """What was not judged, and why."""
    out.print()
    shown = passed_over if verbose else passed_over[:_SHOWN]
    for path, reason in shown:
        out.print(f"· not judged: {clean(path)}: {clean(reason)}", style="dim")
    if len(shown) < len(passed_over):
        out.print(f"· and {counted(len(passed_over) - len(shown), 'more file')} not judged (--verbose lists them)", style="dim")


def _show_ranking(out: Any, judgements: list[Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from rldk.present.incidents import recovered
    from rldk.present.verdicts import STYLES

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("verdict", "run", "events", "since step", "cause"):
        table.add_column(name, justify="right" if name in ("events", "since step") else "left", overflow="fold")
    for judgement in judgements:
        worst = judgement.worst
        table.add_row(
            Text(judgement.verdict, style=STYLES[judgement.verdict]),
            clean(judgement.run.run_id),
            str(len(judgement.run)),
            str(worst.step) if worst else "",
            f"{worst.title}{recovered(worst)}" if worst else judgement.reason,
        )
    out.print(table)


def _show_run(out: Any, judgement: Any, skipped: int, verbose: bool) -> None:
    from rich.text import Text

    from rldk.ingest.unmapped_keys import unplaced
    from rldk.present.verdicts import STYLES

    run = judgement.run
    out.print()
    now = {judgement.verdict: "", "recovered": " (recovered)"}.get(judgement.state, f" ({judgement.state} now)")
    out.print(Text.assemble((judgement.verdict.upper(), STYLES[judgement.verdict]), f"{now}  ", (clean(run.run_id), "bold")))
    span = f"steps {run.steps[0]}–{run.steps[-1]}" if len(run) else "no steps"
    read = run.framework or run.adapter
    lost = f"; {counted(skipped, 'line')} skipped" if skipped else ""
    out.print(f"{counted(len(run), 'event')}, {span}, read as {read}; {judgement.reason}{lost}", style="dim")
    out.print(f"coverage {judgement.coverage.level}: {judgement.coverage.sentence}", style="dim")
    if judgement.scores:
        out.print(" · ".join(_scores(judgement)), style="dim")
    _show_curves(out, judgement)
    for incident in judgement.incidents:
        _show_incident(out, incident)
    _show_machine(out, judgement)
    _show_notes(out, [*judgement.notes, *unplaced(run)])
    if verbose:
        _show_details(out, judgement)


def _scores(judgement: Any) -> list[str]:
    """The three scores as they are now, with what they were at worst where that is lower."""
    from rldk.present.verdicts import MAIN_SCORES, at_worst

    now = judgement.scores
    shown = []
    for name in (name for name in MAIN_SCORES if name in now):
        lower = at_worst(now[name], judgement.worst_scores.get(name))
        shown.append(f"{in_words(name)} {now[name]:.2f}" + (f" ({lower})" if lower else ""))
    return shown


def _show_machine(out: Any, judgement: Any) -> None:
    """Findings about the machine, under a heading of their own: they are no part of the verdict."""
    if judgement.machine:
        out.print("\nMachine (not part of the verdict)", style="bold")
    for finding in judgement.machine:
        over = "" if finding.cleared_index is None else " (over)"
        out.print(f"  step {finding.step}{over}: {clean(finding.message, 300)} {finding.advice}")


def _show_notes(out: Any, notes: list[str]) -> None:
    """What is worth knowing and no anomaly."""
    if notes:
        out.print("\nWorth knowing", style="dim")
    for note in notes:
        out.print(f"· {clean(note, 400)}", style="dim")


def _show_curves(out: Any, judgement: Any) -> None:
    """The metrics that matter as small curves; a mark under them where the first incident was raised."""
    from rich.table import Table

    run = judgement.run
    names = [name for name in CURVES if name in run.columns]
    if not names or len(run) < 2:
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(3):
        table.add_column(no_wrap=True)
    width = max(8, min(48, len(run), out.width - 44))
    for name in names:
        values = run.columns[name].values.tolist()
        there = [value for value in values if value == value] or [float("nan")]
        table.add_row(name, sparkline(values, width), f"{short_number(there[0])} → {short_number(there[-1])}")
    if judgement.incidents:
        marks = ["·" if unicode_terminal() else "."] * width
        for incident in judgement.incidents:
            marks[min(incident.index * width // len(run), width - 1)] = "^"
        first = judgement.incidents[0]
        table.add_row("", "".join(marks), f"step {first.step}")
    out.print()
    out.print(table)


def _show_incident(out: Any, incident: Any) -> None:
    from rich.text import Text

    from rldk.present.incidents import last_good, may_also_be, recovered
    from rldk.present.verdicts import STYLES

    out.print()
    severity = (f"{incident.severity} ", STYLES[incident.severity])
    out.print(Text.assemble(severity, f"at step {incident.step}: ", (incident.title, "bold"), (recovered(incident), "green")))
    for sentence in incident.evidence:
        out.print(f"  {clean(sentence, 300)}")
    if incident.rivals:
        out.print(f"  It may also be: {may_also_be(incident)}.", style="dim")
    out.print(f"  What to do: {incident.advice}")
    out.print(f"  Last good step: {last_good(incident)}.")


def _show_details(out: Any, judgement: Any) -> None:
    from rich.table import Table

    if judgement.anomalies:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in ("step", "index", "severity", "type", "cleared at"):
            table.add_column(name, justify="right" if name in ("step", "index", "cleared at") else "left")
        for anomaly in judgement.anomalies:
            cleared = "" if anomaly.cleared_index is None else str(anomaly.cleared_index)
            table.add_row(str(anomaly.step), str(anomaly.index), anomaly.severity, anomaly.type, cleared)
        out.print()
        out.print(table)
    inactive = judgement.coverage.inactive
    if inactive:
        out.print("\nInactive, with the metric that is not logged:", style="dim")
        for name, lacking in inactive:
            out.print(f"  {name}: {', '.join(lacking)}", style="dim")
