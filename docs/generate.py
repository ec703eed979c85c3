"""Write the pages of docs/ that come from the code, or with --check say which of them are out of date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rldk.core.catalog import CATALOG, FRAMEWORKS, Key, Metric
from rldk.core.catalog.index import AMBIGUOUS

DOCS = Path(__file__).parent

GROUPS = {
    "kl": "KL divergence",
    "policy": "Policy",
    "loss": "Losses",
    "gradient": "Gradients",
    "optimisation": "Optimisation",
    "reward": "Rewards",
    "advantage": "Advantages",
    "value": "Value function",
    "length": "Lengths",
    "preference": "Preferences and supervision",
    "quality": "Quality of the text",
    "mismatch": "Trainer against sampler",
    "throughput": "Throughput",
    "resources": "Resources",
    "settings": "The run itself",
}


def metrics_page() -> str:
    lines = [
        "# Metrics",
        "",
        "Every metric that rldk knows, from the one table in `rldk.core.catalog`. `rldk catalog METRIC` shows a line of it,",
        "and `rldk ingest --explain FILE` shows where the keys of a log of yours went.",
        "",
        "*Reduced over* says what a value is a mean or a sum of. It matters more than the name: the KL of TRL's PPO trainer is",
        "summed over a response (0 to 15 is usual), that of GRPO is by token (0.0001 to 0.3). Where a log does not say which, it",
        "is *unstated*, and no absolute limit is applied to it. Two KLs of different reduction in one run are kept apart: the",
        "second is `kl_mean_per_token` or `kl_mean_per_sequence`.",
        "",
        "A metric of held-out data has `eval_` before its name. A name that ends in `/*` is a family: the part of the key that",
        "matches is appended.",
        "",
        "A key that means different things in different frameworks is read by the framework that the other keys give away.",
        "Where that is not known: " + "; ".join(_ambiguous()) + ".",
        "",
    ]
    for group, title in GROUPS.items():
        lines += [f"## {title}", "", "| metric | meaning | unit | reduced over | trouble | also read as |", "|---|---|---|---|---|---|"]
        lines += [_row(entry) for entry in CATALOG.values() if entry.group == group]
        lines.append("")
    lines += ["## Keys of each framework", ""]
    for framework, title in FRAMEWORKS.items():
        rows = [(key, entry) for entry in CATALOG.values() for key in entry.keys.get(framework, ())]
        if rows:
            lines += [f"### {title}", "", "| key | metric | as it is read |", "|---|---|---|"]
            lines += [f"| `{key.name}` | `{entry.name}` | {_how(key)} |" for key, entry in rows]
            lines.append("")
    return "\n".join(lines)


def _ambiguous() -> list[str]:
    return [f"`{key}` is read as `{name}`{', ' + _how(how) if _how(how) else ''}" for key, (name, how) in AMBIGUOUS.items()]


def _row(entry: Metric) -> str:
    meaning = entry.meaning + (f" ({entry.estimator})" if entry.estimator else "")
    trouble = {"both": "high or low", "none": ""}.get(entry.trouble, entry.trouble)
    aliases = ", ".join(f"`{alias}`" for alias in entry.aliases)
    return f"| `{entry.name}` | {meaning} | {entry.unit} | {entry.reduction} | {trouble} | {aliases} |"


def _how(key: Key) -> str:
    transforms = {
        "negate": "minus its value",
        "magnitude": "its magnitude",
        "percent": "divided by 100",
        "complement": "1 minus its value",
        "root": "its square root",
        "milli": "divided by 1000",
    }
    parts = [transforms.get(key.transform, ""), {"": "", "unstated": "by token or by sequence: unstated"}.get(key.per, f"per {key.per}")]
    return ", ".join(part for part in (*parts, key.estimator) if part)


PAGES = {"metrics.md": metrics_page}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    args = parser.parse_args()
    stale = []
    for name, make in PAGES.items():
        page, text = DOCS / name, make()
        if not page.exists() or page.read_text() != text:
            stale.append(name)
            if not args.check:
                page.write_text(text)
    if args.check and stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
