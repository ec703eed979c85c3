"""Reference pages that come from the code: commands, Python, detectors by symptom. `docs/generate.py` writes them."""

from __future__ import annotations

import argparse
import importlib

import rldk
from rldk.cli.main import COMMANDS, Parser
from rldk.detectors.table import DETECTORS

SYMPTOMS = {
    "reward": "The reward looks wrong",
    "kl_schedule": "The KL looks wrong",
    "policy": "Entropy, ratio, clipping or the text looks wrong",
    "length": "Responses are too long, too short, or do not end",
    "gradient_norms": "Gradients look wrong",
    "advantage_statistics": "Advantages look wrong",
    "value": "The value function looks wrong",
    "preference": "Preference training looks wrong",
    "run": "The loss, the learning rate, the log or the machine looks wrong",
}
"""The families of detectors, by what a person sees first."""

CLASSES = (
    "rldk.judge.results.Results",
    "rldk.judge.result.Result",
    "rldk.judge.incidents.incident.Incident",
    "rldk.core.anomaly.Anomaly",
    "rldk.runs.run.Run",
    "rldk.runs.run.Runs",
    "rldk.comparison.compare.Comparison",
    "rldk.monitor.live_run.LiveRun",
    "rldk.monitor.monitor.Monitor",
    "rldk.present.plots.picture.Picture",
    "rldk.core.errors",
)
"""What the functions of `import rldk` return, take and raise."""


def cli_page() -> str:
    lines = [
        "# Commands",
        "",
        "Every command of `rldk` with its options, as `rldk COMMAND --help` prints them. Commands that report take `--json`.",
        "Colours are left out if `NO_COLOR` is set or the output is not a terminal.",
        "",
        "| command | what it does |",
        "|---|---|",
    ]
    lines += [f"| [`rldk {name}`](#rldk-{name}) | {summary} |" for name, summary in COMMANDS.items()]
    for name in COMMANDS:
        lines += ["", *_command(name)]
    return "\n".join([*lines, ""])


def _command(name: str) -> list[str]:
    module = importlib.import_module(f"rldk.cli.commands.{name}")
    parser = Parser(prog=f"rldk {name}")
    module.configure(parser)
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    places = [action for action in actions if not action.option_strings]
    usage = " ".join([f"rldk {name}", "[OPTIONS]", *(_place(action) for action in places)])
    lines = [f"## rldk {name}", "", (module.__doc__ or "").strip(), "", "```text", usage, "```", ""]
    if actions:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| {_names(action)} | {_meaning(parser, action)} |" for action in (*places, *_options(actions))]
        lines.append("")
    if examples := getattr(module, "EXAMPLES", "").strip():
        lines += ["Examples:", "", "```text", *examples.splitlines(), "```"]
    return lines


def _options(actions: list[argparse.Action]) -> list[argparse.Action]:
    return [action for action in actions if action.option_strings]


def _value(action: argparse.Action) -> str:
    """What stands for the value of an argument; nothing for a switch."""
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def _place(action: argparse.Action) -> str:
    value = _value(action)
    forms = {"+": f"{value} …", "*": f"[{value} …]", "?": f"[{value}]", argparse.REMAINDER: f"{value} …"}
    return forms.get(str(action.nargs), value)


def _names(action: argparse.Action) -> str:
    shown = [" ".join(filter(None, (name, _value(action)))) for name in action.option_strings] or [_value(action)]
    return ", ".join(f"`{name}`" for name in shown).replace("|", "\\|")


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    given = {name: value for name, value in vars(action).items() if value is not argparse.SUPPRESS}
    text = (action.help or "") % {**given, "prog": parser.prog}
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def api_page() -> str:
    functions = [f"rldk.{name}" for name in rldk.__all__ if name != "__version__"]
    lines = [
        "# Python reference",
        "",
        "The functions of `import rldk`, and what they return. [Python](python.md) shows them in use.",
        "",
    ]
    for name in (*functions, *CLASSES):
        lines += [f"::: {name}", ""]
    return "\n".join(lines)


def symptoms_page() -> str:
    lines = [
        "# Detectors by symptom",
        "",
        "What you see, and the detector that reports it. Each row is a clause: a condition that must hold for some rows. A note",
        "is worth knowing and not a defect. Many odd things are [normal](normal.md).",
        "",
    ]
    for family, title in SYMPTOMS.items():
        lines += [f"## {title}", "", "| what you see | severity | detector |", "|---|---|---|"]
        for kind in DETECTORS:
            if kind.family == family:
                link = f"[{kind.type}](detectors/{kind.type}.md)"
                lines += [f"| {_capital(one.says)} | {one.severity} | {link} |" for one in kind.clauses.values()]
        lines.append("")
    return "\n".join(lines)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
