"""What several commands take alike: how to read runs, what to judge them by, and what makes the exit status 1."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rldk.core.errors import UsageError

if TYPE_CHECKING:
    from rldk.judge.config import ScanConfig

__all__ = ["FAILING", "add_fail_on", "add_reading", "exit_status", "parse_field_map", "read_config"]

FAILING: dict[str, frozenset[str]] = {
    "critical": frozenset({"critical"}),
    "warning": frozenset({"critical", "warning"}),
    "never": frozenset(),
}
"""The verdicts on which a command fails, for each value of `--fail-on`."""


def add_reading(parser: argparse.ArgumentParser, *, judged: bool = True) -> None:
    """`--field-map` and `--adapter`, and `--config` and `--sensitivity` where the runs are judged."""
    if judged:
        parser.add_argument(
            "--config", metavar="FILE", help="YAML with thresholds, severities, limits, and detectors switched off"
        )
        parser.add_argument(
            "--sensitivity",
            choices=("low", "normal", "high"),
            help="how soon a condition is raised: low waits longer and says less, high waits less and says more",
        )
    parser.add_argument(
        "--field-map", action="append", default=[], metavar="KEY=METRIC", help="a key of yours and its metric; may be repeated"
    )
    parser.add_argument(
        "--adapter",
        metavar="NAME",
        help="read with this adapter instead of the one the content asks for; a NAME that is none lists them",
    )


def read_config(args: argparse.Namespace) -> ScanConfig:
    """The settings of `--config` and `--sensitivity`."""
    from rldk.judge.config import ScanConfig

    config = ScanConfig.from_yaml(args.config) if args.config else ScanConfig()
    return replace(config, sensitivity=args.sensitivity) if args.sensitivity else config


def add_fail_on(parser: argparse.ArgumentParser, default: str = "critical") -> None:
    """`--fail-on`, for scripts."""
    parser.add_argument(
        "--fail-on", choices=tuple(FAILING), default=default, help=f"what makes the exit status 1 (default: {default})"
    )


def exit_status(verdicts: Iterable[str], fail_on: str) -> int:
    """1 if a verdict is among those on which to fail, else 0."""
    return 1 if FAILING[fail_on].intersection(verdicts) else 0


def parse_field_map(pairs: list[str]) -> dict[str, str]:
    """`["my_kl=kl_mean"]` as a mapping; the last `=` parts the two, since a key may hold one."""
    mapping = {}
    for pair in pairs:
        source, separator, target = pair.rpartition("=")
        if not separator or not source or not target:
            raise UsageError(f"Expected --field-map KEY=METRIC, got {pair!r}.")
        mapping[source.strip()] = target.strip()
    return mapping
