"""Print a detector's page: what it catches, why it matters, when it misfires, what to do, and what can be set."""

from __future__ import annotations

import argparse

from rldk.cli.output import console, print_json
from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean
from rldk.detectors.base import COMMON_SETTINGS, SECTIONS, Detector


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("type", nargs="?", metavar="TYPE", help="a type of anomaly; all are listed if left out")
    parser.add_argument("--json", action="store_true", help="print as one JSON object")


def run(args: argparse.Namespace) -> int:
    from rldk.detectors.run.user_limit import UserLimit
    from rldk.detectors.table import DETECTORS

    kinds: list[type[Detector]] = [*DETECTORS, UserLimit]
    known = {kind.type: kind for kind in kinds}
    if args.type is None:
        if args.json:
            print_json({"detectors": [_as_dict(kind) for kind in known.values()]})
        else:
            _list(list(known.values()))
        return 0
    if args.type not in known:
        raise UsageError(f"No detector {args.type!r}." + (did_you_mean(args.type, known) or " `rldk explain` lists them."))
    kind = known[args.type]
    if args.json:
        print_json(_as_dict(kind))
    else:
        _show(kind)
    return 0


def _as_dict(kind: type[Detector]) -> dict[str, object]:
    settings = {**kind.settings, **COMMON_SETTINGS}
    return {
        "type": kind.type,
        "tracker": kind.tracker,
        "needs": [list(group) for group in kind.needs],
        "documentation": kind.documentation(),
        "settings": {
            name: {"default": _default(kind, name), "meaning": setting.meaning, "least": setting.least, "most": setting.most}
            for name, setting in settings.items()
        },
    }


def _default(kind: type[Detector], name: str) -> float:
    return kind.settings[name].default if name in kind.settings else float(getattr(kind, name))


def _list(kinds: list[type[Detector]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("type", "tracker", "what it is"):
        table.add_column(name, overflow="fold", no_wrap=name != "what it is")
    for kind in kinds:
        table.add_row(kind.type, kind.tracker, kind.documentation()["title"])
    console().print(table)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _show(kind: type[Detector]) -> None:
    out = console()
    pages = kind.documentation()
    out.print(f"{kind.type}  ({kind.tracker})", style="bold")
    out.print(pages["title"])
    for section in SECTIONS:
        out.print(f"\n{section}", style="bold")
        out.print(_sentence(pages.get(section, "–")))
    out.print("\nNeeds", style="bold")
    out.print("; ".join(" or ".join(group) for group in kind.needs) or "nothing in particular")
    out.print("\nSettings", style="bold")
    for name, setting in {**kind.settings, **COMMON_SETTINGS}.items():
        out.print(f"{name} = {_default(kind, name):g}: {setting.meaning}")
    out.print("enabled, severity: switch it off, or overrule its severity")
