"""The command line: an explicit table of commands, each in a file of its own, imported only when it is called."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from rldk._version import __version__
from rldk.cli.options import add_project
from rldk.cli.output import while_read
from rldk.core.errors import RLDKError, UsageError
from rldk.core.text import clean, did_you_mean
from rldk.storage.places import shown_in

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, str] = {
    "scan": "judge runs: what went wrong, since when, why, and what to do",
    "report": "write a report with plots, incidents and scores: one HTML file, PNG, Markdown",
    "compare": "compare runs: settings, where they part ways, and where each ended",
    "gate": "pass or fail runs in continuous integration, by verdict, limits and a baseline",
    "ack": "acknowledge a finding, so that it is no longer reported as new",
    "watch": "follow a run that is being written, in the terminal",
    "run": "run a command, judge what it prints as it appears, and end it if asked",
    "replay": "show where a run would have been stopped, and what that would have saved",
    "explain": "print the page of a detector or a cause: what it means, how it is recognised, what to do",
    "dashboard": "follow the runs of a folder in the browser, as they are written",
    "ingest": "read runs of any framework into one table",
    "checkpoints": "compare the checkpoints of a run, layer by layer",
    "index": "keep a table of the verdicts of many runs up to date",
    "runs": "list the runs of an index, by any condition",
    "fleet": "show what happens over all runs of an index: causes, compute lost, settings that fail",
    "digest": "send a summary of an index to a web address or a command",
    "demo": "write a healthy and a broken run in seconds, and judge both",
    "doctor": "check what is installed, what works, versions, permissions, disk and GPU",
    "bundle": "make a redacted archive of a run, to report a false alarm",
    "init": "write a commented rldk.toml with the settings of a project",
    "completion": "print a script that completes commands in bash, zsh or fish",
    "mcp": "serve scan, compare and explain to an agent, read-only",
    "catalog": "show the metrics rldk knows, and what each framework calls them",
}
"""Every command and what it does; its code is in `rldk.cli.commands.<name>`."""

OK, ERROR, INTERRUPTED = 0, 2, 130
_HELP_WIDTH = 100


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence that names the help."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}.{self._meant(message)} See `{self.prog} --help`.")

    def _meant(self, message: str) -> str:
        """The option that an unknown one is near to."""
        unknown = next((word for word in message.split() if word.startswith("--")), "")
        options = [option for action in self._actions for option in action.option_strings]
        asked = bool(unknown) and message.startswith("unrecognized")
        return did_you_mean(unknown.partition("=")[0], options, most=1, cutoff=0.7) if asked else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status; an error is one sentence on stderr and status 2."""
    _survive_plain_terminals()
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    try:
        if name not in COMMANDS:
            if name is not None:
                raise UsageError(f"There is no command {name!r}.{did_you_mean(name, COMMANDS)} See `rldk --help`.")
            _top_parser().parse_args(arguments)
            with while_read():
                _top_parser().print_help()
            return OK
        command = importlib.import_module(f"rldk.cli.commands.{name}")
        parser = _command_parser(name, command)
        own = arguments[: arguments.index("--")] if "--" in arguments else arguments
        if not {"-h", "--help"} & set(own):
            add_project(parser)
        arguments.remove(name)
        status = OK
        with while_read():
            status = int(command.run(parser.parse_args(arguments)))
        return status  # noqa: RET504  0 if the reader closed the pipe before the command had a status
    except RLDKError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last guard: a user gets a sentence, and the traceback on request
        if os.environ.get("RLDK_DEBUG"):
            traceback.print_exc()
        return _fail(f"unexpected {type(error).__name__}: {error} (RLDK_DEBUG=1 shows where)")


def _command_parser(name: str, command: ModuleType) -> Parser:
    """The parser of a command, with its description and examples wrapped to the terminal."""
    width = max(40, min(shutil.get_terminal_size((_HELP_WIDTH, 24)).columns, _HELP_WIDTH))
    paragraphs = [" ".join(text.split()) for text in (command.__doc__ or "").strip().split("\n\n")]
    about = "\n\n".join(textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False) for text in paragraphs)
    examples = textwrap.indent((getattr(command, "EXAMPLES", "") or f"rldk {name} --help").strip(), "  ")
    parser = Parser(
        prog=f"rldk {name}", description=about, epilog=f"examples:\n{examples}",
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width),
    )  # fmt: skip
    command.configure(parser)
    return parser


def _survive_plain_terminals() -> None:
    """A terminal that takes only ASCII gets a `?` for each other character, and not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and "utf" not in stream.encoding.lower():
            stream.reconfigure(errors="replace")


def _fail(message: str) -> int:
    sys.stderr.write(f"rldk: error: {clean(shown_in(' '.join(message.split())), 1000)}\n")
    return ERROR


def _top_parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:{width}}  {summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        prog="rldk",
        description="The RL debug kit: what is going wrong in a reinforcement-learning run, since when, why, and what to do.",
        epilog=f"commands:\n{listing}\n\n`rldk COMMAND --help` describes each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="rldk [-h] [--version] COMMAND ...",
    )
    parser.add_argument("--version", action="version", version=f"rldk {__version__}")
    parser.add_argument("command", choices=list(COMMANDS), nargs="?", metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
