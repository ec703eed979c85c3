"""Serve scan, compare and explain to an agent over the Model Context Protocol, on standard input and output.

It reads only below the given folders and changes nothing. Prompts and responses stay out unless --samples is given. An agent is
set up with the command `rldk mcp FOLDER`.
"""

from __future__ import annotations

import argparse

EXAMPLES = """
rldk mcp out/runs
rldk mcp out/runs --samples
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="a folder that may be read")
    parser.add_argument("--samples", action="store_true", help="let the agent read prompts and responses too")


def run(args: argparse.Namespace) -> int:
    from rldk.cli.mcp_server import Folders, build_server
    from rldk.storage.copies import local_copies

    build_server(Folders(local_copies(folder) for folder in args.folders), args.samples).run("stdio")
    return 0
