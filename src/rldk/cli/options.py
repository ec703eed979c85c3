"""What several commands share: how to read and judge runs, and what makes the exit status 1."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.cli.output import progress_bar
from rldk.core.errors import UsageError

if TYPE_CHECKING:
    from rldk.ingest.read import Ingested
    from rldk.judge.config import ScanConfig
    from rldk.judge.result import Result

__all__ = [
    "FAILING", "Judged", "add_fail_on", "add_json", "add_reading", "exit_status", "judge_paths", "parse_field_map", "read_config",
    "read_paths",
]  # fmt: skip

FAILING: dict[str, frozenset[str]] = {
    "critical": frozenset({"critical"}),
    "warning": frozenset({"critical", "warning"}),
    "never": frozenset(),
}
"""The verdicts on which a command fails, for each value of `--fail-on`."""


def add_reading(parser: argparse.ArgumentParser, *, judged: bool = True) -> None:
    """`--field-map` and `--adapter`, and where the runs are judged `--config` and `--sensitivity`."""
    if judged:
        parser.add_argument("--config", metavar="FILE", help="YAML with thresholds, severities, limits, and detectors to disable")
        parser.add_argument(
            "--sensitivity", choices=("low", "normal", "high"),
            help="how soon a condition is raised: low waits longer and reports less, high waits less and reports more",
        )  # fmt: skip
    parser.add_argument(
        "--field-map", action="append", default=[], metavar="KEY=METRIC",
        help="a key of the log and the metric it stands for; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--adapter", metavar="NAME", help="read with this adapter, not the one chosen by content; an unknown NAME prints the list"
    )


def add_json(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """`--json`, for programs."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as one JSON object")


def add_fail_on(parser: argparse.ArgumentParser, default: str = "critical") -> None:
    """`--fail-on`, for scripts."""
    parser.add_argument(
        "--fail-on", choices=tuple(FAILING), default=default, help=f"what makes the exit status 1 (default: {default})"
    )


def exit_status(verdicts: Iterable[str], fail_on: str) -> int:
    """1 if a verdict is among those on which to fail, else 0."""
    return 1 if FAILING[fail_on].intersection(verdicts) else 0


def parse_field_map(pairs: list[str]) -> dict[str, str]:
    """`["my_kl=kl_mean"]` as a mapping, split at the last `=`, because a key may contain one."""
    mapping = {}
    for pair in pairs:
        source, separator, target = pair.rpartition("=")
        if not separator or not source or not target:
            raise UsageError(f"Expected --field-map KEY=METRIC, got {pair!r}.")
        mapping[source.strip()] = target.strip()
    return mapping


def read_config(args: argparse.Namespace) -> ScanConfig:
    """The settings of `--config` and `--sensitivity`."""
    from rldk.judge.config import ScanConfig

    config = ScanConfig.from_yaml(args.config) if args.config else ScanConfig()
    return replace(config, sensitivity=args.sensitivity) if args.sensitivity else config


def read_paths(args: argparse.Namespace, paths: Sequence[str]) -> Ingested:
    """Read the runs of these paths as the options say, with a progress bar for large input."""
    from rldk.ingest import read_runs
    from rldk.ingest.paths import expand, size_of

    found = expand(paths)
    with progress_bar(size_of(found)) as progress:
        fields = parse_field_map(args.field_map)
        return read_runs(found, adapter_hint=args.adapter, field_map=fields, progress=progress, lenient=True)


@dataclass(slots=True)
class Judged:
    """The runs that were judged, each with the number of lines of its file that were skipped, and what was not judged.

    `passed_over` has the reason for each file that was not judged: a file that cannot be read is not a healthy run. Those
    that the user asked for by name are in `unread` too.
    """

    results: list[tuple[Result, int]] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)

    @property
    def verdicts(self) -> list[str]:
        return [result.verdict for result, _ in self.results]

    def not_judged(self) -> list[dict[str, Any]]:
        """What was not judged, as the JSON of the commands has it."""
        return [{"path": path, "reason": reason} for path, reason in self.passed_over]


def judge_paths(args: argparse.Namespace, paths: Sequence[str]) -> Judged:
    """Judge all runs of these paths; of several files, one that cannot be read stops no other."""
    from rldk.judge.scan import judge_run

    config = read_config(args)
    read = read_paths(args, paths)
    problems = {report.path: report.problems for report in read.files}
    judged = Judged([], read.passed_over, read.unread)
    for run in read.runs:
        own = problems.get(run.path)
        if own is not None and own.damage:
            run.notes.append(own.damage)
        judged.results.append((judge_run(run, config), own.total if own is not None else 0))
    return judged
