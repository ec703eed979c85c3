"""Print, for each framework, how many of the keys that it logs are placed, known but not judged, and unknown.

    python scripts/framework_keys.py [FRAMEWORK …] [--list] [--json]

A second table has the same for logs of other versions, of forks and of consoles, whose keys were not looked at when the lists
were made; and for the seven quantities that are judged first, over what each is reduced, or `-` where the log does not have it.
The keys are in `tests/core/framework_keys.json` and `tests/core/framework_logs.json`; `--list` also prints where each of them
goes. The exit status is 1 if a key is unknown, or is read as another metric than these files expect.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rldk.core.catalog import identify, plan_for
from rldk.core.catalog.axes import is_axis

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "core"
KINDS = ("placed", "known", "axis", "unknown")
QUANTITIES = {
    "reward": ("reward_mean",), "KL": ("kl_mean", "kl_update", "mismatch_kl"), "entropy": ("entropy_mean",),
    "gradient": ("policy_grad_norm", "grad_norm"), "length": ("rollout_length_mean",), "lr": ("policy_lr", "lr"),
    "loss": ("policy_loss", "loss"),
}  # fmt: skip
"""What is judged first, and the metrics that it may be logged as."""


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


def quantities(places: dict[str, str]) -> dict[str, str]:
    """Over what each of the seven quantities is reduced; a KL that is not from the reference is named."""
    found = dict(place.rstrip(")").split(" (") for place in places.values() if "(" in place)
    said = {}
    for quantity, metrics in QUANTITIES.items():
        metric = next((name for name in metrics if name in found), None)
        other = {"kl_update": " (update)", "mismatch_kl": " (sampler)"}.get(metric or "", "")
        said[quantity] = "-" if metric is None else found[metric] + other
    return said


def count(framework: str, keys: list[str], places: dict[str, str]) -> dict[str, int | bool]:
    """How many of the keys are what, and whether they identify the framework."""
    kinds = [place if place in KINDS else "placed" for place in places.values()]
    return {**{kind: kinds.count(kind) for kind in KINDS}, "recognised": identify(keys) == framework}


def numbers(found: dict[str, int | bool]) -> str:
    return " ".join(f"{found[kind]:7d}" for kind in KINDS) + f"  {'yes' if found['recognised'] else 'no':10s}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", nargs="*", help="default: all of the list")
    parser.add_argument("--list", action="store_true", help="print where each key goes")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    args = parser.parse_args()
    lists, logs = (json.loads((FOLDER / f"framework_{name}.json").read_text(encoding="utf-8")) for name in ("keys", "logs"))
    if unknown := sorted(set(args.framework) - set(lists)):
        parser.error(f"no key list of {', '.join(unknown)}; there are lists of {', '.join(lists)}")
    counts: dict[str, Any] = {}
    wrong: list[str] = []
    for framework in args.framework or lists:
        for log, given in {"": lists[framework], **logs.get(framework, {})}.items():
            places = sort_keys(framework, given["keys"])
            row = {**count(framework, given["keys"], places), "quantities": quantities(places)}
            counts.setdefault(framework, {"logs": {}}).update(row) if not log else counts[framework]["logs"].update({log: row})
            at = f"{framework}, {log}" if log else framework
            wrong += [f"{at}: {line}" for line in misplaced(places, given["expect"])]
            wrong += [f"{at}: {key} is unknown" for key, place in places.items() if place == "unknown"]
            if args.list:
                print(*(f"{framework:15s} {key:60s} {place}" for key, place in places.items()), sep="\n")
    print(json.dumps(counts, indent=2)) if args.json else show(counts)
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


def show(counts: dict[str, Any]) -> None:
    """Print both tables."""
    heads = " ".join(f"{kind:>7s}" for kind in KINDS) + "  recognised"
    print(f"{'framework':15s} {heads}")
    for framework, found in counts.items():
        print(f"{framework:15s} {numbers(found)}")
    print("\nlogs that are not in the lists, and what the seven quantities are reduced over")
    print(f"{'framework':15s} {'log':34s} {heads}  " + "".join(f"{quantity:16s}" for quantity in QUANTITIES))
    for framework, found in counts.items():
        for log, row in found["logs"].items():
            print(f"{framework:15s} {log:34s} {numbers(row)}  " + "".join(f"{said:16s}" for said in row["quantities"].values()))


if __name__ == "__main__":
    sys.exit(main())
