"""Replay runs as if they were live, and tell where each would have been stopped and what share of it that would have saved."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rldk.cli.commands.scan import judge_paths, show_passed_over
from rldk.cli.options import add_reading
from rldk.cli.output import console, print_json
from rldk.core.text import clean, counted, duration


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="RUN", help="a file, a folder or a glob")
    parser.add_argument(
        "--stop-on", choices=("critical", "warning"), default="critical", help="what stops the run (default: critical)"
    )
    add_reading(parser)
    parser.add_argument("--json", action="store_true", help="print as one JSON object")


def run(args: argparse.Namespace) -> int:
    unread: list[Path] = []
    judged, passed_over = judge_paths(args, unread)
    stops = [_stop(judgement, args.stop_on) for judgement, _ in judged]
    if args.json:
        not_judged = [{"path": path, "reason": reason} for path, reason in passed_over]
        print_json({"stop_on": args.stop_on, "runs": stops, "passed_over": not_judged})
    else:
        _show(stops)
        if passed_over:
            show_passed_over(console(), passed_over)
    return 2 if unread else 0


def _stop(judgement: Any, severity: str) -> dict[str, Any]:
    """Where the first anomaly of that severity was raised; a critical is one for whoever stops on warnings, too."""
    wanted = ("critical",) if severity == "critical" else ("critical", "warning")
    first = next((anomaly for anomaly in judgement.engine.anomalies if anomaly.severity in wanted), None)
    events = len(judgement.run)
    times = judgement.run.wall_time
    stop: dict[str, Any] = {"run_id": judgement.run.run_id, "events": events, "stopped": first is not None}
    if first is not None:
        stop |= {
            "step": first.step,
            "index": first.index,
            "type": first.type,
            "severity": first.severity,
            "message": first.message,
            "saved_share": (events - 1 - first.index) / max(events - 1, 1),
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
        if stop["saved_seconds"] == stop["saved_seconds"] and stop["saved_seconds"] > 0:
            saved += f" ({duration(stop['saved_seconds'])})"
        out.print(
            Text.assemble(
                f"{clean(stop['run_id'])}: would have stopped at step {stop['step']} ",
                f"(event {stop['index']} of {stop['events']}) on ",
                (stop["type"], STYLES[stop["severity"]]),
                f", saving {saved}. {clean(stop['message'], 300)}",
            )
        )
