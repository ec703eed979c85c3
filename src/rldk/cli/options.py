"""What several commands share: how to read and judge runs, what is notified, and what makes the exit status 1."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rldk.cli.progress import copy_bar, judging_bar, progress_bar
from rldk.core.anomaly import SEVERITIES
from rldk.core.errors import UsageError

if TYPE_CHECKING:
    from rldk.fleet.scan import Engine, OnResult
    from rldk.fleet.work import Reading
    from rldk.ingest.read import Ingested
    from rldk.judge.config import ScanConfig
    from rldk.judge.result import Result
    from rldk.judge.results import Results

__all__ = [
    "FAILING", "add_alarms", "add_fail_on", "add_index", "add_jobs", "add_json", "add_notify", "add_project", "add_reading",
    "add_receivers", "chosen_engine", "exit_status", "field_map_of", "indexed_runs", "judge_given", "judge_in_parallel",
    "parse_field_map", "read_config", "read_paths", "reading_of",
]  # fmt: skip

FAILING: dict[str, frozenset[str]] = {
    "critical": frozenset({"critical"}),
    "warning": frozenset({"critical", "warning"}),
    "never": frozenset(),
}
"""The verdicts on which a command fails, for each value of `--fail-on`."""

_READING = frozenset({"field_map", "paths", "path", "folder", "folders", "store"})


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


def add_receivers(parser: argparse.ArgumentParser) -> None:
    """`--notify`; `rldk.monitor.notifications` makes outputs of what it is given."""
    parser.add_argument(
        "--notify", action="append", default=[], metavar="WHERE",
        help="slack, discord, teams, ntfy, email or desktop (set up by environment variables), or an address to post JSON to; "
        "may be repeated",
    )  # fmt: skip


def add_notify(parser: argparse.ArgumentParser) -> None:
    """`--notify` and `--on`."""
    add_receivers(parser)
    parser.add_argument(
        "--on", choices=SEVERITIES, default="critical", help="how severe an anomaly must be to be acted upon (default: critical)"
    )


def add_alarms(parser: argparse.ArgumentParser) -> None:
    """`--notify`, `--on` and `--confirm`."""
    add_notify(parser)
    parser.add_argument(
        "--confirm", type=int, default=1, metavar="N",
        help="stop only if the anomaly still stands N events later (default: 1, since the last row may be half written)",
    )  # fmt: skip


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
    """The settings of the project, those of `--config`, and `--sensitivity`; the later ones win."""
    from rldk.judge.config import ScanConfig

    config = args.project.scan if hasattr(args, "project") else ScanConfig()
    if args.config:
        config = config.merged_with(ScanConfig.from_yaml(args.config))
    return replace(config, sensitivity=args.sensitivity) if args.sensitivity else config


def field_map_of(args: argparse.Namespace) -> dict[str, str]:
    """The field map of the project, and `--field-map`, which wins."""
    own = args.project.field_map if hasattr(args, "project") else {}
    return {**own, **parse_field_map(args.field_map)}


def reading_of(args: argparse.Namespace) -> Reading:
    """How many logs are read and judged, in this process and in others."""
    from rldk.fleet.work import Reading

    return Reading(read_config(args), args.adapter, field_map_of(args))


def add_project(parser: argparse.ArgumentParser) -> None:
    """Take the defaults of a command's options from the settings of the project and the environment."""
    known = {action.dest: action for action in parser._actions}
    if not known.keys() & _READING:
        return  # the command reads no runs
    from rldk.judge.project_settings import project_settings

    found = project_settings()
    if "cache_size" in found.options:
        from rldk.storage.cache import set_cache_limit

        try:
            set_cache_limit(str(found.options["cache_size"]))
        except UsageError as error:
            raise UsageError(f"{found.source or 'rldk.toml'}: cache_size: {error}") from None
    if "field_map" not in known:
        return
    for name, value in found.options.items():
        if (action := known.get(name)) is None:
            continue
        where = f"RLDK_{name.upper()} or {found.source or 'rldk.toml'}"
        if action.choices and value not in action.choices:
            raise UsageError(f"{where}: expected `{name}` to be one of {list(action.choices)}, got {value!r}.")
        if action.type is int:
            try:
                value = int(value)
            except (TypeError, ValueError):
                raise UsageError(f"{where}: expected `{name}` to be a whole number, got {value!r}.") from None
        action.default = value
    parser.set_defaults(project=found)


def read_paths(args: argparse.Namespace, paths: Sequence[str]) -> Ingested:
    """Read the runs of these paths as the options say, with a progress bar for large input."""
    from rldk.ingest import read_runs
    from rldk.ingest.paths import expand, size_of

    with copy_bar() as on_bytes:
        found = expand(paths, on_bytes)
    with progress_bar(size_of(found)) as progress:
        fields = field_map_of(args)
        return read_runs(found, adapter_hint=args.adapter, field_map=fields, progress=progress, lenient=True)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """`--jobs`, `--engine` and `--address`, for many files."""
    parser.add_argument(
        "--engine", choices=("processes", "ray"), default="processes",
        help="where files are judged: in processes of this machine, or on a Ray cluster that exists already",
    )  # fmt: skip
    parser.add_argument("--address", metavar="HOST:PORT", help="the Ray cluster (default: RAY_ADDRESS, or this machine's)")
    parser.add_argument(
        "--jobs", type=int, metavar="N",
        help="judge in N processes (default: one for a few small files, else one per core)",
    )  # fmt: skip


def add_index(parser: argparse.ArgumentParser) -> None:
    """The store whose index is read, `--index` and `--where`."""
    parser.add_argument("store", nargs="?", default=".", metavar="STORE", help="the folder that was indexed (default: this one)")
    parser.add_argument("--index", metavar="FILE", help="where the table is (default: STORE/.rldk/index.parquet)")
    parser.add_argument("--where", default="", metavar="SQL", help="a condition on the columns of the table")


def indexed_runs(args: argparse.Namespace, also: str = "", order: str = "", limit: int | None = None) -> list[dict[str, Any]]:
    """The runs of the index that fulfil `--where` and another condition."""
    from rldk.fleet.index import index_path, read_index
    from rldk.fleet.query import find_runs
    from rldk.storage.places import folder_of

    where = " and ".join(f"({one})" for one in (args.where, also) if one.strip())
    return find_runs(read_index(index_path(folder_of(args.store), args.index)), where, order, limit)


def judge_in_parallel(args: argparse.Namespace, paths: Sequence[str], on_result: OnResult | None = None) -> Results:
    """Judge as `judge_given` does, in as many processes as `--jobs` says; the runs of many files come without their rows.

    `on_result` is called with each result as soon as it is ready. A terminal shows how many runs have been judged so far, with
    their verdicts, and each critical one.
    """
    from rldk.fleet.scan import judge_many
    from rldk.ingest.paths import expand, size_of

    reading = reading_of(args)
    with copy_bar() as on_bytes:
        found = expand(paths, on_bytes)
    total = size_of(found)
    with judging_bar(total) as progress:
        if progress is None:
            return judge_many(found, reading, jobs=args.jobs, engine=chosen_engine(args), on_result=on_result)

        def count(result: Result) -> None:
            progress.judged(result)
            if on_result is not None:
                on_result(result)

        return judge_many(found, reading, jobs=args.jobs, engine=chosen_engine(args), on_file=progress.read, on_result=count)


def chosen_engine(args: argparse.Namespace) -> Engine | None:
    """What `--engine` and `--address` say; `None` for processes of this machine."""
    if args.engine != "ray":
        if args.address:
            raise UsageError("--address is that of a Ray cluster: add --engine ray.")
        return None
    from rldk.fleet.ray_engine import on_ray

    return on_ray(args.address)


def judge_given(args: argparse.Namespace, paths: Sequence[str]) -> Results:
    """Judge all runs of these paths as the options say; of several files, one that cannot be read stops no other."""
    from rldk.judge.results import judge_runs

    config = read_config(args)
    return judge_runs(read_paths(args, paths), config)
