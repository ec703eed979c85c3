"""Print the page of a detector or a cause: what it means, how it is recognised, and what to do.

A detector's page says what it catches, why it matters, when it misfires, and which settings it has; a cause's page says which
evidence speaks for it. A name that is both has both pages. `rldk explain normal` lists what looks wrong in a log and is
normal.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rldk.cli.options import add_json
from rldk.cli.output import console, print_json, table

if TYPE_CHECKING:
    from rldk.present.explain_pages import Page


EXAMPLES = """
rldk explain
rldk explain reward_hacking
rldk explain kl_penalty_too_weak
rldk explain normal
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "type", nargs="?", metavar="NAME", help="a type of anomaly, a cause, or `normal`; all are listed if left out"
    )
    add_json(parser, "the page")


def run(args: argparse.Namespace) -> int:
    from rldk.present.explain_pages import cause_pages, detector_pages, page_of

    if args.type == "normal":
        _show_normal(args.json)
    elif args.type is None and args.json:
        causes = [page.to_dict()["cause"] for page in cause_pages().values()]
        print_json({"detectors": [page.to_dict() for page in detector_pages().values()], "causes": causes})
    elif args.type is None:
        rows = [(page.type, page.kind.family, page.title) for page in detector_pages().values()]
        out = console()
        out.print(table(("type", "family", "what it is"), rows, unwrapped=("type", "family")))
        out.print()
        meanings = [(page.type, page.title) for page in cause_pages().values()]
        out.print(table(("cause", "what it means"), meanings, unwrapped=("cause",)))
    elif args.json:
        print_json(page_of(args.type).to_dict())
    else:
        _show(page_of(args.type))
    return 0


def _show(page: Page) -> None:
    out = console()
    for number, (heading, lines) in enumerate(page.parts()):
        out.print(heading if number == 0 else f"\n{heading}", style="bold")
        for line in lines:
            out.print(line)


def _show_normal(as_json: bool) -> None:
    from rldk.detectors.normal import NORMAL

    if as_json:
        print_json({"normal": [asdict(oddity) for oddity in NORMAL]})
        return
    out = console()
    out.print("What looks wrong and is normal", style="bold")
    for oddity in NORMAL:
        out.print(f"\n{oddity.seen}", style="bold")
        out.print(f"Why: {oddity.why}")
        out.print(f"Not normal: {oddity.unless}")
