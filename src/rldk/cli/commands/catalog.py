"""Show the metrics that rldk knows: their meaning, unit, and what each framework calls them."""

from __future__ import annotations

import argparse
from typing import Any

from rldk.cli.options import add_json
from rldk.cli.output import console, print_json, table
from rldk.core.catalog import CATALOG, FRAMEWORKS, Key, Metric, keys_of, locate
from rldk.core.errors import UsageError
from rldk.core.text import did_you_mean

EXAMPLES = """
rldk catalog
rldk catalog objective/kl
rldk catalog --group reward
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "metric", nargs="?", metavar="METRIC", help="a metric, or a key of any framework; all metrics if left out"
    )
    parser.add_argument("--group", metavar="GROUP", help="only the metrics of a group, such as kl, reward or length")
    add_json(parser, "the metrics")


def run(args: argparse.Namespace) -> int:
    if args.metric is not None:
        entry = _find(args.metric)
        if args.json:
            print_json(_as_dict(entry))
        else:
            _show_one(entry)
        return 0
    groups = sorted({entry.group for entry in CATALOG.values()})
    if args.group is not None and args.group not in groups:
        raise UsageError(f"Expected the group to be one of {', '.join(groups)}, got {args.group!r}.")
    chosen = [entry for entry in CATALOG.values() if args.group in (None, entry.group)]
    if args.json:
        titles = {name: framework.title for name, framework in FRAMEWORKS.items()}
        print_json({"metrics": [_as_dict(entry) for entry in chosen], "frameworks": titles})
    else:
        _show_all(chosen)
    return 0


def _find(name: str) -> Metric:
    """The metric of that name, or the one that a framework logs under that key."""
    if name in CATALOG:
        return CATALOG[name]
    place = locate(name)
    if place is not None:
        return CATALOG.get(place.metric) or CATALOG[f"{place.metric.split('/', 1)[0]}/*"]
    raise UsageError(f"No metric {name!r}." + (did_you_mean(name, CATALOG) or " `rldk catalog` lists them."))


def _as_dict(entry: Metric) -> dict[str, Any]:
    return {
        "name": entry.name,
        "group": entry.group,
        "meaning": entry.meaning,
        "unit": entry.unit,
        "reduction": entry.reduction,
        "estimator": entry.estimator,
        "trouble": entry.trouble,
        "aliases": list(entry.aliases),
        "complements": list(entry.complements),
        "keys": {framework: [_key(key, entry) for key in keys] for framework, keys in keys_of(entry.name).items()},
    }


def _key(key: Key, entry: Metric) -> dict[str, str]:
    reduction = key.per or entry.reduction
    return {"key": key.name, "transform": key.transform, "reduction": reduction, "estimator": key.estimator or entry.estimator}


def _show_all(entries: list[Metric]) -> None:
    rows = [(entry.name, entry.unit, entry.reduction, entry.trouble, entry.meaning) for entry in entries]
    console().print(table(("metric", "unit", "reduced over", "trouble", "meaning"), rows))


def _show_one(entry: Metric) -> None:
    out = console()
    out.print(entry.name, style="bold")
    out.print(f"{entry.meaning}\n")
    for label, value in (
        ("unit", entry.unit), ("reduced over", entry.reduction), ("estimator", entry.estimator),
        ("trouble when", {"both": "too high or too low", "none": "–"}.get(entry.trouble, f"too {entry.trouble}")),
        ("also read as", ", ".join([*entry.aliases, *(f"1 - {name}" for name in entry.complements)])),
    ):  # fmt: skip
        if value:
            out.print(f"{label:14}{value}")
    if called := keys_of(entry.name):
        rows = [(FRAMEWORKS[framework].title, key.name, _how_read(key)) for framework, keys in called.items() for key in keys]
        out.print()
        out.print(table(("framework", "key", "as it is read"), rows))


def _how_read(key: Key) -> str:
    per = {"": "", "unstated": "per token or per sequence, not stated"}.get(key.per, f"per {key.per}")
    return ", ".join(filter(None, ("" if key.transform == "same" else key.transform, per, key.estimator)))
