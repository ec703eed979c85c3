"""Write the pages of docs/ that come from the code, or with --check say which of them are out of date."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import benchmark_page
import files_page
import gallery
import reference_pages
import training_keys

from rldk.core.catalog import CATALOG, FRAMEWORKS, Key, Metric
from rldk.core.catalog.lookup import AMBIGUOUS
from rldk.detectors.base import COMMON_SETTINGS, SECTIONS, Detector
from rldk.detectors.normal import NORMAL
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import DETECTORS

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
        "Every metric that rldk knows, from the tables in `rldk.core.catalog`. `rldk catalog METRIC` shows one of them,",
        "and `rldk ingest --explain FILE` shows what each key of your log becomes.",
        "",
        "*Reduced over* says what a value is a mean or a sum of. It matters more than the name: the KL of TRL's PPO trainer is",
        "summed over a response (0 to 15 is usual), that of GRPO is per token (0.0001 to 0.3). If a log does not say which, it",
        "is *unstated*, and no absolute limit is applied to it. If one run logs two KLs of different reduction, the second",
        "becomes `kl_mean_per_token` or `kl_mean_per_sequence`.",
        "",
        "Metrics of held-out data start with `eval_`. A name that ends in `/*` is a family: the part of the key that",
        "matches is appended.",
        "",
        "A key that means different things in different frameworks is read according to the framework that the",
        "other keys identify. If that is not known: " + "; ".join(_ambiguous()) + ".",
        "",
    ]
    for group, title in GROUPS.items():
        lines += [
            f"## {title}",
            "",
            "| metric | meaning | unit | reduced over | trouble | also read as |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_row(entry) for entry in CATALOG.values() if entry.group == group]
        lines.append("")
    lines += ["## Keys of each framework", ""]
    for framework in FRAMEWORKS.values():
        rows = [(key, metric) for metric, keys in framework.keys.items() for key in keys]
        if rows:
            lines += [f"### {framework.title}", "", "| key | metric | as it is read |", "|---|---|---|"]
            lines += [f"| `{key.name}` | `{metric}` | {_how(key)} |" for key, metric in rows]
            lines.append("")
    return "\n".join(lines)


def _ambiguous() -> list[str]:
    return [f"`{key}` is read as `{name}`{', ' + _how(how) if _how(how) else ''}" for key, (name, how) in AMBIGUOUS.items()]


def _row(entry: Metric) -> str:
    meaning = entry.meaning + (f" ({entry.estimator})" if entry.estimator else "")
    trouble = {"both": "high or low", "none": ""}.get(entry.trouble, entry.trouble)
    aliases = ", ".join([*(f"`{alias}`" for alias in entry.aliases), *(f"1 − `{alias}`" for alias in entry.complements)])
    return f"| `{entry.name}` | {meaning} | {entry.unit} | {entry.reduction} | {trouble} | {aliases} |"


def _how(key: Key) -> str:
    transforms = {
        "negate": "minus its value",
        "magnitude": "minus it where it begins below 0",
        "unless_negative": "unless it begins below 0",
        "percent": "divided by 100",
        "complement": "1 minus its value",
        "root": "its square root",
        "milli": "divided by 1000",
    }
    parts = [
        transforms.get(key.transform, ""),
        {"": "", "unstated": "per token or per sequence: unstated"}.get(key.per, f"per {key.per}"),
    ]
    return ", ".join(part for part in (*parts, key.estimator) if part)


def detector_page(kind: type[Detector]) -> str:
    said = kind.documentation()
    lines = [f"# {kind.type}", "", said["title"], ""]
    for section in SECTIONS:
        lines += [f"## {section}", "", _sentence(said[section]), ""]
    lines += ["## Clauses", "", "| clause | holds where | severity | raised | basis |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {clause.says} | {clause.severity} | {kind.wait_in_words(name)} | {clause.basis} |"
        for name, clause in kind.clauses.items()
    ]
    lines += ["", "## Needs", "", _needs(kind), ""]
    lines += ["## Settings", "", "| setting | default | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {setting.default:g} | {setting.meaning} |" for name, setting in kind.settings.items()]
    common = {"persist": "by clause", "clear": f"{kind.clear}"}
    lines += [f"| `{name}` | {common[name]} | {setting.meaning} |" for name, setting in COMMON_SETTINGS.items()]
    lines += [
        "| `severity` | its own | `warning` or `critical`: overrides its own severity |",
        "| `sensitivity` | normal | `low` waits longer, `high` less |",
        "| `enabled` | true | false switches it off |",
        "",
    ]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _needs(kind: type[Detector]) -> str:
    groups = [" or ".join(f"`{name}`" for name in group) for group in kind.needs]
    return "; and ".join(groups) + "." if groups else "Nothing in particular."


def normal_page() -> str:
    lines = [
        "# What looks odd and is normal",
        "",
        "What people often ask about in healthy runs. `rldk explain normal` prints the same list.",
        "",
    ]
    for oddity in NORMAL:
        lines += [f"## {oddity.seen.removesuffix('.')}", "", oddity.why, "", f"*Not normal:* {oddity.unless}", ""]
    return "\n".join(lines)


def detectors_index() -> str:
    lines = [
        "# Detectors",
        "",
        "Every rule of rldk, one defect each. A *warning* is worth a look today; at a *critical* a competent engineer would",
        "stop the run. `rldk explain TYPE` prints the same pages. The documentation is part of the classes.",
        "",
        "Each can be configured in a YAML file for `rldk scan --config`:",
        "",
        "```yaml",
        "detectors:",
        "  entropy_explosion: {factor: 6, persist: 5}   # its own settings, and how long the condition must hold",
        "  throughput_drop: false                       # off",
        "  length_runaway: {severity: warning}          # never critical",
        "limits:                                        # your own hard limits",
        "  kl_mean: {max: 0.2, severity: critical}",
        "kl_target: 6.0",
        "sensitivity: normal                            # low waits longer and says less, high waits less and says more",
        "```",
        "",
        "A detector is made of *clauses*: each is a condition, a severity and a persistence, with the basis of its numbers, and",
        "an anomaly says which of them held. A clause of severity *note* is worth knowing but not an anomaly. Persistence is",
        "counted in steps: if a row of the log stands for several steps, fewer rows are needed. With `sensitivity: low`",
        "(`rldk scan --sensitivity low`, `RLDKCallback(config={'sensitivity': 'low'})`) a warning must hold for twice as long",
        "and a critical 1.5 times as long; with `high` half as long. What one row proves, and your own limits, are raised at",
        "once in any case. [What looks odd and is normal](../normal.md) is not an anomaly.",
        "",
        "| type | family | what it is |",
        "|---|---|---|",
    ]
    lines += [f"| [{kind.type}]({kind.type}.md) | {kind.family} | {kind.documentation()['title']} |" for kind in KINDS]
    return "\n".join([*lines, ""])


def security_page() -> str:
    return (DOCS.parent / "SECURITY.md").read_text()


KINDS: list[type[Detector]] = [*DETECTORS, UserLimit]
PAGES = {
    "metrics.md": metrics_page,
    "training_metrics.md": training_keys.page,
    "benchmark.md": benchmark_page.page,
    "normal.md": normal_page,
    "security.md": security_page,
    "gallery.md": gallery.page,
    "symptoms.md": reference_pages.symptoms_page,
    "commands.md": reference_pages.cli_page,
    "api.md": reference_pages.api_page,
    "files.md": files_page.files_page,
    "detectors/index.md": detectors_index,
    **{f"detectors/{kind.type}.md": partial(detector_page, kind) for kind in KINDS},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    args = parser.parse_args()
    stale = []
    stray = {f"detectors/{page.name}" for page in (DOCS / "detectors").glob("*.md")} - set(PAGES)
    for name in sorted(stray):
        stale.append(name)
        if not args.check:
            (DOCS / name).unlink()
    for name, make in PAGES.items():
        page, text = DOCS / name, make()
        if not page.exists() or page.read_text() != text:
            stale.append(name)
            if not args.check:
                page.parent.mkdir(exist_ok=True)
                page.write_text(text)
    if args.check and stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
