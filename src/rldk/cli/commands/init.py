"""Write a commented rldk.toml: thresholds, limits, field map and defaults of options for a project.

It holds for its folder and those below it. The command line wins over the environment, and that over the file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rldk.cli.options import add_json
from rldk.cli.output import console, print_json
from rldk.core.errors import UsageError
from rldk.core.files import write_text
from rldk.core.text import clean

EXAMPLES = """
rldk init
rldk init experiments/ --force
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", default=".", metavar="DIR", help="where to write it (default: here)")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    add_json(parser, "what was written")


def run(args: argparse.Namespace) -> int:
    from rldk.judge.project_settings import template

    path = Path(args.target) / "rldk.toml"
    if path.exists() and not args.force:
        raise UsageError(f"{path} exists already; --force replaces it.")
    write_text(path, template())
    if args.json:
        print_json({"file": str(path)})
    else:
        console().print(f"wrote {clean(path, 1000)}; every setting in it is commented out")
    return 0
