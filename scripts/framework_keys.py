"""Print, for each framework, how many of the keys that it logs are placed, known but not judged, and unknown.

    python scripts/framework_keys.py [FRAMEWORK …] [--list] [--json]

The key lists are in `tests/core/framework_keys.json`; `--list` also prints where each key goes. The exit status is 1 if a key is
unknown, or is read as another metric than the list expects.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rldk.core.catalog import identify, plan_for
from rldk.core.catalog.axes import is_axis

KEYS = Path(__file__).resolve().parents[1] / "tests" / "core" / "framework_keys.json"


def sort_keys(framework: str, keys: list[str]) -> dict[str, str]:
    """Where each key goes: a metric with its reduction, `known`, an `axis`, or `unknown`."""
    plan = plan_for(tuple(keys), framework)
    found = {part: f"{name} ({route.per})" for name, routes in plan.routes.items() for route in routes for part in route.parts}
    for key in keys:  # a key that is part of a sum may be a metric by itself too
        for name, routes in plan_for((key,), framework).routes.items():
            found[key] = f"{name} ({routes[0].per})"
        if key not in found:
            found[key] = "axis" if is_axis(key) else "known" if key in plan.not_judged else "unknown"
    return {key: found[key] for key in keys}


def misplaced(places: dict[str, str], expected: dict[str, list[str]]) -> list[str]:
    """The keys that do not go where they should, each with what is wrong."""
    wanted = {key: f"{metric} ({per})" for key, (metric, per) in expected.items()}
    return [f"{key} is {places[key]}, expected {where}" for key, where in wanted.items() if places[key] != where]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", nargs="*", help="default: all of the list")
    parser.add_argument("--list", action="store_true", help="print where each key goes")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    args = parser.parse_args()
    lists = json.loads(KEYS.read_text(encoding="utf-8"))
    if unknown := sorted(set(args.framework) - set(lists)):
        parser.error(f"no key list of {', '.join(unknown)}; there are lists of {', '.join(lists)}")
    counts, wrong = {}, []
    for framework in args.framework or lists:
        places = sort_keys(framework, lists[framework]["keys"])
        kinds = [place if place in ("known", "unknown", "axis") else "placed" for place in places.values()]
        counts[framework] = {kind: kinds.count(kind) for kind in ("placed", "known", "axis", "unknown")}
        counts[framework]["recognised"] = identify(lists[framework]["keys"]) == framework
        wrong += [f"{framework}: {line}" for line in misplaced(places, lists[framework]["expect"])]
        wrong += [f"{framework}: {key} is unknown" for key, place in places.items() if place == "unknown"]
        if args.list:
            print(*(f"{framework:15s} {key:60s} {place}" for key, place in places.items()), sep="\n")
    if args.json:
        print(json.dumps(counts, indent=2))
    else:
        print(f"{'framework':15s} {'placed':>7s} {'known':>7s} {'axis':>7s} {'unknown':>8s}  recognised by its keys")
        for framework, found in counts.items():
            numbers = f"{found['placed']:7d} {found['known']:7d} {found['axis']:7d} {found['unknown']:8d}"
            print(f"{framework:15s} {numbers}  {'yes' if found['recognised'] else 'no'}")
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
