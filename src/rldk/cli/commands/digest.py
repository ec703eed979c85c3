"""Send a summary of the runs of an index: to a service, to a web address, or to a command on its standard input. Run it by your
own scheduler.

    rldk index out && rldk digest out --since 1 --notify slack

Exit status: 0 sent (or printed, where no receiver was given), 2 it could not be sent.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rldk.cli.options import add_index, add_json, add_receivers, indexed_runs
from rldk.cli.output import print_json
from rldk.core.errors import RLDKError, UsageError
from rldk.core.files import strict

EXAMPLES = """
rldk digest runs/ --since 1
rldk digest runs/ --since 7 --notify https://hooks.example.com/T0/B0 --notify email
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_index(parser)
    parser.add_argument("--since", type=float, metavar="DAYS", help="only runs whose log ended or changed in the last DAYS")
    add_receivers(parser)
    parser.add_argument("--command", action="append", default=[], metavar="COMMAND", help="run this with the digest on its input")
    add_json(parser, "the digest")


def run(args: argparse.Namespace) -> int:
    from rldk.fleet.overview import digest_text, overview_of

    overview = overview_of(indexed_runs(args, _since(args.since)))
    text = digest_text(overview)
    name = f"digest-{time.time():.0f}"
    details = strict({"run_id": args.store, "step": 0, "anomalies": [], "digest": overview.to_dict()})
    failures = [_failure(key, send) for key, send in _receivers(args, name, text, details)]
    if args.json:
        print_json({"id": name, **details, "text": text})
    else:
        sys.stdout.write(text + "\n")
    if any(failures):
        raise RLDKError(f"The digest could not be sent by {'; '.join(filter(None, failures))}")
    return 0


def _since(days: float | None) -> str:
    if days is None:
        return ""
    if not days > 0:
        raise UsageError(f"Expected --since to be a number of days above 0, got {days:g}.")
    return f"greatest(coalesce(ended, 0), file_changed / 1e9) >= {time.time() - days * 86_400!r}"


def _receivers(args: argparse.Namespace, name: str, text: str, details: dict[str, Any]) -> list[tuple[str, Callable[[], Any]]]:
    """The name of each receiver, and what sends the digest to it."""
    from rldk.monitor import Command, notifications
    from rldk.monitor.outputs.incident_messages import Message

    headline = text.partition("\n")[0]
    message = Message(name, 1, "new", "warning", headline, headline, text, details)
    services = [(one.key, partial(one.post, message, None)) for one in notifications(args.notify)]
    commands = [(one.key, partial(one.send, {"id": name, **details, "text": text})) for one in map(Command, args.command)]
    return [*services, *commands]


def _failure(receiver: str, send: Callable[[], Any]) -> str:
    """Send the digest; what has failed, if anything has."""
    from http.client import HTTPException

    try:
        send()
    except (OSError, HTTPException, subprocess.SubprocessError, UsageError) as error:
        return f"{receiver}: {error}"
    return ""
