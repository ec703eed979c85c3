"""Replay runs as if they were live: where each would have been stopped, and what share of it that would have saved."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rldk.cli.options import FAILING, add_json, add_reading, judge_given
from rldk.cli.output import console, print_json, show_not_judged
from rldk.core.text import clean, counted, duration

if TYPE_CHECKING:
    from rldk.judge.result import Result


EXAMPLES = """
rldk replay out/demo
rldk replay out/run.jsonl --stop-on warning --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="RUN", help="a file, a folder or a glob")
    parser.add_argument(
        "--stop-on", choices=("critical", "warning"), default="critical", help="what stops the run (default: critical)"
    )
    add_reading(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    judged = judge_given(args, args.paths)
    stops = [_stop(result, args.stop_on) for result in judged]
    if args.json:
        print_json({"stop_on": args.stop_on, "runs": stops, "passed_over": judged.not_judged()})
    else:
        _show(stops)
        show_not_judged(judged.passed_over)
    return 2 if judged.unread else 0


def _stop(result: Result, severity: str) -> dict[str, Any]:
    """Where the first anomaly of that severity, or a worse one, was raised."""
    first = next((anomaly for anomaly in result.anomalies if anomaly.severity in FAILING[severity]), None)
    events = len(result.run)
    times = result.run.wall_time
    stop: dict[str, Any] = {"run_id": result.run.run_id, "events": events, "stopped": first is not None}
    if first is not None:
        stop |= {
            "step": first.step,
            "index": first.index,
            "type": first.type,
            "severity": first.severity,
            "message": first.message,
            "saved_share": result.run.share_after(first.index),
            "saved_seconds": float(times[-1] - times[first.index]),
        }
    return stop


def _show(stops: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from rldk.present.verdicts import STYLES

    out = console()
    for stop in stops:
        if not stop["stopped"]:
            out.print(f"{clean(stop['run_id'])}: would have run to its end ({counted(stop['events'], 'event')}).")
            continue
        saved = f"{stop['saved_share']:.0%} of the run"
        if stop["saved_seconds"] > 0:
            saved += f" ({duration(stop['saved_seconds'])})"
        out.print(
            Text.assemble(
                f"{clean(stop['run_id'])}: would have stopped at step {stop['step']} ",
                f"(event {stop['index'] + 1} of {stop['events']}) on ",
                (stop["type"], STYLES[stop["severity"]]),
                f", saving {saved}. {clean(stop['message'], 300)}",
            )
        )
