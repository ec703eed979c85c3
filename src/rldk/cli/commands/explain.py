"""Print a detector's page: what it catches, why it matters, when it misfires, what to do, and its settings.

`rldk explain normal` lists what looks wrong in a log and is normal.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rldk.cli.options import add_json
from rldk.cli.output import console, print_json, table

if TYPE_CHECKING:
    from rldk.present.detector_page import DetectorPage


EXAMPLES = """
rldk explain
rldk explain reward_hacking
rldk explain normal
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("type", nargs="?", metavar="TYPE", help="a type of anomaly, or `normal`; all are listed if left out")
    add_json(parser, "the page")


def run(args: argparse.Namespace) -> int:
    from rldk.present.detector_page import detector_page, detector_pages

    if args.type == "normal":
        _show_normal(args.json)
    elif args.type is None and args.json:
        print_json({"detectors": [page.to_dict() for page in detector_pages().values()]})
    elif args.type is None:
        rows = [(page.type, page.kind.family, page.title) for page in detector_pages().values()]
        console().print(table(("type", "family", "what it is"), rows, unwrapped=("type", "family")))
    elif args.json:
        print_json(detector_page(args.type).to_dict())
    else:
        _show(detector_page(args.type))
    return 0


def _show(page: DetectorPage) -> None:
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
