"""Read runs: choose the adapter for each file, collect the runs, and give an account of what was read and what was not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rldk.core.catalog import CATALOG, check_field_map
from rldk.core.errors import MissingDependencyError, ReadError, RLDKError
from rldk.core.text import few
from rldk.ingest.adapter import Adapter
from rldk.ingest.choose import adapter_named, choose
from rldk.ingest.discovery import OnSkipped, candidates
from rldk.ingest.duplicates import drop_prefixes, name_apart
from rldk.ingest.formats.flexible import FlexibleAdapter
from rldk.ingest.paths import PathsLike, expand
from rldk.ingest.source import Source
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems
from rldk.runs.run import Run, frame_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FileReport", "Ingested", "LogFile", "UnexpectedError", "ingest_runs", "logs_at", "read_log", "read_runs", "reason_for",
    "unexpected",
]  # fmt: skip

logger = logging.getLogger("rldk")

FileProgress = Callable[[Path, int, int], None]
"""Called with the file being read, the bytes consumed of it and its size."""

_MEASURING = frozenset(
    {"kl", "policy", "reward", "advantage", "value", "length", "gradient", "loss", "preference", "mismatch", "quality"}
)


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file to read, or a folder that is one log. One found by `searching` a folder may turn out to hold something else."""

    path: Path
    searching: bool = False


@dataclass(slots=True)
class FileReport:
    """One file that was read: by which adapter and why, its runs, the lines skipped, and what had to be decided."""

    path: Path
    adapter: str
    why: str
    framework: str | None
    runs: list[Run]
    problems: LineProblems


ReadFiles = Callable[[Sequence[LogFile]], Iterable[FileReport | RLDKError]]
"""Reads files: for each, in their order, what was read of it or the error that says why it cannot be read."""


@dataclass(slots=True)
class Ingested:
    """All runs that were read, with a report for each file, and the files that were passed over with the reason.

    `unread` are those among the latter that were asked for by name.
    """

    runs: list[Run] = field(default_factory=list)
    files: list[FileReport] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)

    def frame(self) -> pd.DataFrame:
        """All runs in one frame; `run_id` says which is which."""
        return frame_of(self.runs)


def ingest_runs(source: PathsLike, adapter_hint: str | None = None, field_map: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Read one run or many into a frame: step, wall_time, the canonical metrics, run_id, phase and what else there is.

    Args:
        source: a file, a folder, a glob, or a list of them.
        adapter_hint: the adapter to use (an unknown name prints the list); by default chosen by the content. A file that it
            cannot read is read by the flexible adapter if that can, with a warning.
        field_map: keys of your own and the canonical metrics they stand for, such as `{"my_kl": "kl_mean"}`.

    Lines that were skipped and unrecognised keys are reported through the logger `rldk`; `read_runs` returns them. With
    `logging.basicConfig(level=logging.DEBUG)` it also says what was read from where, and what was passed over.
    """
    result = read_runs(source, adapter_hint=adapter_hint, field_map=field_map)
    for report in result.files:
        if said := report.problems.summary():
            logger.warning("%s: %s", report.path, said)
        unmapped = sorted({name for run in report.runs for name in run.coverage.unmapped})
        if unmapped and report.adapter == "flexible":
            logger.warning(
                "%s: unknown schema, read by the flexible adapter. Unrecognised keys: %s; map them with "
                "--field-map KEY=METRIC or field_map={...} (`rldk catalog` lists the metrics).",
                report.path, few(unmapped, 8),
            )  # fmt: skip
    return result.frame()


def read_runs(
    source: PathsLike,
    *,
    adapter_hint: str | None = None,
    field_map: Mapping[str, str] | None = None,
    progress: FileProgress | None = None,
    lenient: bool = False,
    lists_unexpected: bool = False,
    read_files: ReadFiles | None = None,
) -> Ingested:
    """Read one run or many, with an account of what was read, skipped and passed over.

    A file named by itself must be readable, unless `lenient` and another one is; with `lists_unexpected` one of several is also
    listed, and not an error, where the error is rldk's own. Of a folder, what can be read is read and the rest is listed.
    `read_files` reads the files in some other way than one after the other in this process.
    """
    check_field_map(field_map or {})
    if adapter_hint is not None:
        adapter_named(adapter_hint)  # an unknown name is no fault of a file
    result = Ingested()
    groups = [(path, logs_at(path, adapter_hint, lambda one, why: _pass_over(result, one, why))) for path in expand(source)]
    read = read_files or partial(read_in_turn, adapter_hint=adapter_hint, field_map=field_map, progress=progress)
    outcomes = iter(read([log for _, logs in groups for log in logs]))
    for path, logs in groups:
        try:
            _take(path, logs, outcomes, result)
        except (ReadError, MissingDependencyError) as error:
            listed = lenient or (lists_unexpected and isinstance(error, UnexpectedError))
            if not listed or len(groups) == 1:
                raise
            _pass_over(result, path, reason_for(error, path))
            result.unread.append(path)
    result.runs, dropped = drop_prefixes([run for report in result.files for run in report.runs])
    result.passed_over += dropped
    if not result.runs:
        raise ReadError(_nothing(result))
    name_apart(result.runs)
    return result


def logs_at(path: Path, hint: str | None = None, on_skipped: OnSkipped | None = None) -> list[LogFile]:
    """The files to read at a path: itself, or what may be a log below a folder. What cannot be opened there is reported."""
    if not path.is_dir():
        return [LogFile(path)]
    return [LogFile(found, searching=True) for found in candidates(path, hint, on_skipped)]


def _take(path: Path, logs: Sequence[LogFile], outcomes: Iterator[FileReport | RLDKError], result: Ingested) -> None:
    """Add what was read at one path; a file in a folder that cannot be read is listed, one that was named is an error."""
    found = False
    for log, outcome in zip(logs, outcomes, strict=False):  # `outcomes` goes on with the logs of the next path
        if isinstance(outcome, FileReport):
            result.files.append(outcome)
            found = True
        elif log.searching:
            _pass_over(result, log.path, reason_for(outcome, log.path))
        else:
            raise outcome
    if not found and not result.passed_over:
        raise ReadError(f"{path} holds no file that may be a log.")


def read_in_turn(
    logs: Iterable[LogFile],
    *,
    adapter_hint: str | None = None,
    field_map: Mapping[str, str] | None = None,
    progress: FileProgress | None = None,
) -> Iterator[FileReport | RLDKError]:
    """Read files one after the other: for each what was read of it, or the error that says why it cannot be read.

    An error that nobody expected is raised if there is one file; of several, it stops no other file.
    """
    logs = list(logs)
    for log in logs:
        try:
            yield read_log(log, adapter_hint, field_map, progress)
        except (ReadError, MissingDependencyError) as error:
            yield error
        except Exception as error:
            if len(logs) == 1:
                raise
            yield unexpected(log.path, "read", error)


class UnexpectedError(ReadError):
    """An error of rldk's own at one of several files."""


def unexpected(path: Path, done: str, error: Exception) -> UnexpectedError:
    """The error to list for one of several files; its traceback is in the debug log."""
    logger.debug("%s could not be %s", path, done, exc_info=error)
    return UnexpectedError(f"{path} could not be {done}: unexpected {type(error).__name__}: {error}.")


def read_log(
    log: LogFile, hint: str | None = None, field_map: Mapping[str, str] | None = None, progress: FileProgress | None = None
) -> FileReport:
    """Read the runs of one file."""
    path = log.path
    told = None if progress is None else lambda done, total: progress(path, done, total)
    try:
        adapter = _adapter(Source(path), hint, field_map, told, log.searching)
        runs = adapter.runs()
    except OSError as error:  # of a store: one of its files
        where = f" ({error.filename})" if error.filename not in (None, str(path)) else ""
        raise ReadError(f"{path} cannot be read: {error.strerror or error}{where}.") from error
    if not runs:
        raise ReadError(f"{path} {_why_no_run(adapter)}")
    if log.searching and not any(_measures(run) for run in runs):
        raise ReadError(f"{path} holds settings, not a training log.")
    report = FileReport(path, adapter.name, adapter.why, runs[0].framework, runs, adapter.problems)
    _debug(report)
    return report


def _adapter(
    source: Source, hint: str | None, field_map: Mapping[str, str] | None, told: Progress | None, searching: bool
) -> Adapter:
    """The adapter for a file; of one that is named by itself and not of the kind that was asked for, the flexible one."""
    try:
        return choose(source, hint=hint, field_map=field_map, progress=told)
    except ReadError as error:
        flexible = FlexibleAdapter(source, field_map=field_map, progress=told)
        if hint is None or searching or hint == flexible.name or not flexible.can_handle():
            raise
        logger.warning(
            "%s Read by the flexible adapter instead; map keys of your own with field_map={...} or --field-map KEY=METRIC.", error
        )
        return flexible


def _pass_over(result: Ingested, path: Path, reason: str) -> None:
    result.passed_over.append((path, reason))
    logger.debug("%s was passed over: %s", path, reason)


def _debug(report: FileReport) -> None:
    """What was read of a file, and under which keys."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    logger.debug("%s was read by the adapter %s: %s", report.path, report.adapter, report.why)
    for run in report.runs:
        logger.debug("%s: run %s, %d events of %s", report.path, run.run_id, len(run), run.framework or "no known framework")
        for metric, key in run.coverage.metrics.items():
            logger.debug("%s: %s from the key %s", report.path, metric, key)
        for key in run.coverage.unmapped:
            logger.debug("%s: the key %s is not recognised", report.path, key)
        for note in run.notes:
            logger.debug("%s: %s", report.path, note)


def _measures(run: Run) -> bool:
    """Whether a run found in a folder is one: it has a metric of training, and more than a row or several such metrics."""
    measured = [
        name for name in run.coverage.metrics if (entry := CATALOG.get(name.split("/", 1)[0])) and entry.group in _MEASURING
    ]
    return bool(measured) and (len(run) > 1 or len(measured) > 2)


def reason_for(error: Exception | str, path: Path) -> str:
    """What an error says, without the path that is shown beside it."""
    return str(error).removeprefix(f"rldk cannot read {path}: ").removeprefix(f"{path} ")


def _why_no_run(adapter: Adapter) -> str:
    """Why a log gives no run: its lines cannot be used, it has no rows, or only keys that are not known."""
    if said := adapter.problems.summary():
        return f"has no row with a metric. {said}."
    if not adapter.rows:
        return "has no rows."
    return "has no row with a metric. Map its keys with --field-map KEY=METRIC."


def _nothing(result: Ingested) -> str:
    if not result.passed_over:
        return "Nothing to read."
    path, reason = result.passed_over[0]
    more = f" ({len(result.passed_over) - 1} more files passed over)" if len(result.passed_over) > 1 else ""
    return f"No run could be read. {path}: {reason}{more}"
