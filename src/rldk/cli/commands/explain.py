"""Print a detector's page: what it catches, why it matters, when it misfires, what to do, and its settings.

`rldk explain normal` lists what looks wrong in a log and is normal.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from rldk.cli.options import add_json
from rldk.cli.output import console, print_json, table
from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean, sentence
from rldk.detectors.base import COMMON_SETTINGS, SECTIONS, Detector


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("type", nargs="?", metavar="TYPE", help="a type of anomaly, or `normal`; all are listed if left out")
    add_json(parser, "the page")


def run(args: argparse.Namespace) -> int:
    from rldk.detectors.run.user_limit import UserLimit
    from rldk.detectors.table import DETECTORS

    if args.type == "normal":
        _show_normal(args.json)
        return 0
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
        "tracker": kind.family,
        "needs": [list(group) for group in kind.needs],
        "documentation": kind.documentation(),
        "clauses": {
            name: {"says": clause.says, "severity": clause.severity, "holds": steps, "rows": rows, "basis": clause.basis}
            for name, clause in kind.clauses.items()
            for steps, rows in (kind.persistence(name),)
        },
        "settings": {
            name: {"default": _default(kind, name), "meaning": setting.meaning, "least": setting.min, "most": setting.max}
            for name, setting in settings.items()
        },
    }


def _default(kind: type[Detector], name: str) -> float | None:
    """The default of a setting; `None` for a persistence that each clause sets for itself."""
    if name in kind.settings:
        return kind.settings[name].default
    return None if name == "persist" and kind.check is Detector.check else float(getattr(kind, name))


def _list(kinds: list[type[Detector]]) -> None:
    rows = [(kind.type, kind.family, kind.documentation()["title"]) for kind in kinds]
    console().print(table(("type", "family", "what it is"), rows, unwrapped=("type", "family")))


def _show(kind: type[Detector]) -> None:
    out = console()
    pages = kind.documentation()
    out.print(f"{kind.type}  ({kind.family})", style="bold")
    out.print(pages["title"])
    for section in SECTIONS:
        out.print(f"\n{section}", style="bold")
        out.print(sentence(pages.get(section, "–")))
    out.print("\nClauses", style="bold")
    for name, clause in kind.clauses.items():
        out.print(f"{name} ({clause.severity}, {kind.wait_in_words(name)}): {sentence(clause.says)}.")
        out.print(f"    Basis: {clause.basis}.")
    out.print("\nNeeds", style="bold")
    out.print("; ".join(" or ".join(group) for group in kind.needs) or "nothing in particular")
    out.print("\nSettings", style="bold")
    for name, setting in {**kind.settings, **COMMON_SETTINGS}.items():
        default = _default(kind, name)
        out.print(f"{name} = {'by clause' if default is None else f'{default:g}'}: {setting.meaning}")
    out.print("enabled, severity, sensitivity: disable it, override its severity, or make it wait less (high) or longer (low)")


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
