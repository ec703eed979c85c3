"""Acknowledge a finding of a run: later scans show it as acknowledged, and it no longer makes `scan` or `gate` fail.

The acknowledgement is written to rldk_acks.json beside the log. It covers findings of that type up to the severity found now: a
warning that becomes critical is reported again. The cause of an incident stands for all of its findings that are not acknowledged
yet; a cause that is also the type of a finding stands for that type only.
"""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_json, add_reading, judge_given
from rldk.cli.output import console, print_json
from rldk.core.errors import UsageError
from rldk.core.text import clean, did_you_mean, listed

if TYPE_CHECKING:
    from rldk.judge.result import Result

EXAMPLES = """
rldk ack out/demo/broken_events.jsonl kl_explosion --reason "expected: no KL penalty in this ablation" --until 30d
rldk ack out/demo/broken_events.jsonl kl_explosion --withdraw
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN", help="the log of a run")
    parser.add_argument("type", metavar="TYPE", help="the type of a finding (`rldk scan -v` lists them), or an incident's cause")
    parser.add_argument("--reason", default="", help="why it is acceptable (required)")
    parser.add_argument("--until", default="", metavar="DAY", help="2026-12-31, or 14d or 2w from now (default: for good)")
    parser.add_argument("--run-id", metavar="ID", help="which run, where the log holds several")
    parser.add_argument("--withdraw", action="store_true", help="remove the acknowledgement")
    add_json(parser, "the acknowledgement")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.judge.acknowledgements import Acknowledgement, acknowledge, until_date, withdraw

    result = _run(args)
    log, run_id = result.run.path, result.run.run_id
    found = _found(result, args.type)
    if args.withdraw:
        gone = [kind for kind in found if withdraw(log, run_id, kind)]
        if not gone:
            raise UsageError(f"{args.type} of {run_id} is not acknowledged.")
        are = "is" if len(gone) == 1 else "are"
        _tell(args, {"withdrawn": gone, "run_id": run_id}, f"{listed(gone)} of {clean(run_id)} {are} reported again.")
        return 0
    found = _new(result, args.type, found)
    if not args.reason.strip():
        raise UsageError("Expected --reason, so that others know why the finding is acceptable.")
    now, until = datetime.now(timezone.utc).isoformat(timespec="seconds"), until_date(args.until) if args.until else ""
    reason = args.reason.strip()
    acks = [Acknowledgement(log.name, run_id, kind, severity, reason, until, now) for kind, severity in found.items()]
    path = [acknowledge(log, ack) for ack in acks][-1]
    what = ", ".join(f"{kind} ({severity})" for kind, severity in found.items())
    said = f"{what} of {clean(run_id)} acknowledged{f' until {until}' if until else ''}: {clean(reason, 300)}"
    _tell(args, {"acknowledged": [ack.to_dict() for ack in acks], "file": str(path)}, f"{said}\nwrote {clean(path, 1000)}")
    return 0


def _run(args: argparse.Namespace) -> Result:
    judged = judge_given(args, [args.path])
    if args.run_id:
        return judged[str(args.run_id)]
    if len(judged) > 1:
        names = ", ".join(clean(result.run.run_id) for result in judged[:8])
        raise UsageError(f"{args.path} holds {len(judged)} runs: choose one with --run-id ({names}).")
    return judged[0]


def _found(result: Result, name: str) -> dict[str, str]:
    """The types that a name stands for, itself or those of an incident with that cause, with the worst severity of each."""
    every = [*result.anomalies, *result.machine]
    causes = {one.cause: {result.anomalies[number].type for number in one.anomalies} for one in result.incidents}
    wanted = {name} if any(one.type == name for one in every) else causes.get(name, set())
    found: dict[str, str] = {}
    for one in every:
        if one.type in wanted and found.get(one.type) != "critical":
            found[one.type] = one.severity
    if not found:
        names = sorted({*(one.type for one in every), *causes})
        hint = did_you_mean(name, names) or (f" It has {', '.join(names[:8])}." if names else " It has no findings.")
        raise UsageError(f"{result.run.run_id} has no finding {name!r}.{hint}")
    return found


def _new(result: Result, name: str, found: dict[str, str]) -> dict[str, str]:
    """Of the types of a cause, those that are not acknowledged yet: the reason and the day of the others stay."""
    from rldk.judge.acknowledgements import is_acknowledged

    if name in found:
        return found
    left = {one.type for one in result.anomalies if not is_acknowledged(one, result.acknowledged)}
    if not left & found.keys():
        raise UsageError(f"All findings of {name} are acknowledged already. To change a reason, give the type of the finding.")
    return {kind: severity for kind, severity in found.items() if kind in left}


def _tell(args: argparse.Namespace, record: dict[str, Any], words: str) -> None:
    if args.json:
        print_json(record)
    else:
        console().print(words)
