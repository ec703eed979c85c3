"""Send a summary of the runs of an index: to a web address, or to a command on its standard input. Run it by your own scheduler.

    rldk index out && rldk digest out --since 1 --notify https://hooks.example.com/…

Exit status: 0 sent (or printed, where no receiver was given), 2 it could not be sent.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_index, add_json, indexed_runs
from rldk.cli.output import print_json
from rldk.core.errors import RLDKError, UsageError
from rldk.core.files import strict

if TYPE_CHECKING:
    from rldk.monitor import Notification


EXAMPLES = """
rldk digest runs/ --since 1
rldk digest runs/ --since 7 --notify https://hooks.example.com/T0/B0
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_index(parser)
    parser.add_argument("--since", type=float, metavar="DAYS", help="only runs whose log ended or changed in the last DAYS")
    parser.add_argument("--notify", action="append", default=[], metavar="URL", help="post it to this address; may be repeated")
    parser.add_argument("--command", action="append", default=[], metavar="COMMAND", help="run this with the digest on its input")
    add_json(parser, "the digest")


def run(args: argparse.Namespace) -> int:
    from rldk.fleet.overview import digest_text, overview_of

    overview = overview_of(indexed_runs(args, _since(args.since)))
    text = digest_text(overview)
    name = f"digest-{time.time():.0f}"
    message = strict({"id": name, "run_id": args.store, "step": 0, "anomalies": [], "text": text, "digest": overview.to_dict()})
    for output in _outputs(args):
        _send(output, message)
    if args.json:
        print_json(message)
    else:
        sys.stdout.write(text + "\n")
    return 0


def _since(days: float | None) -> str:
    if days is None:
        return ""
    if not days > 0:
        raise UsageError(f"Expected --since to be a number of days above 0, got {days:g}.")
    return f"greatest(coalesce(ended, 0), file_changed / 1e9) >= {time.time() - days * 86_400!r}"


def _outputs(args: argparse.Namespace) -> list[Notification]:
    from rldk.monitor import Command, Webhook

    return [*(Webhook(url) for url in args.notify), *(Command(words) for words in args.command)]


def _send(output: Notification, message: dict[str, Any]) -> None:
    try:
        output.send(message)
    except (OSError, subprocess.SubprocessError) as error:
        raise RLDKError(f"The digest could not be sent by {output.key}: {error}") from error
