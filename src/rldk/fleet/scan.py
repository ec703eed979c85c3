"""Judge the runs of many files in several processes; the results are those of one process, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from rldk.core.errors import ReadError, RLDKError, UsageError
from rldk.fleet.pool import WorkError, answer_of, available_cores, run_in_processes
from rldk.fleet.work import JudgedFile, Reading, judge_file, judge_whole
from rldk.ingest.discovery import stamp_of
from rldk.ingest.paths import PathsLike, expand
from rldk.ingest.read import FileReport, LogFile, logs_at, read_runs
from rldk.judge.result import Result
from rldk.judge.results import Results, judge_paths

__all__ = ["Engine", "OnFile", "OnResult", "choose_jobs", "in_processes", "judge_many", "named_error"]

_WORTH_PROCESSES = 8 << 20
"""Bytes below which one process is done before others have started: about two seconds of reading and judging."""

_FEW = 200  # files of which the runs are kept whole

Engine = Callable[[Callable[[LogFile], JudgedFile], Iterable[LogFile]], Iterator[tuple[int, JudgedFile | RLDKError]]]
"""Calls a function with each of many files somewhere else; gives the number of each with its answer, as they are ready."""

OnFile = Callable[[Path, int], None]
"""Called with a file and the bytes of it that have been read, as the work goes on."""


OnResult = Callable[[Result], None]
"""Called with the result of each run as soon as it is judged, in no particular order."""


def choose_jobs(logs: Sequence[LogFile], jobs: int | None = None) -> int:
    """How many processes to use: what was asked for, else all cores for many or large files, and one for a few small ones."""
    if jobs is not None:
        if jobs < 1:
            raise UsageError(f"Expected --jobs to be at least 1, got {jobs}.")
        return min(jobs, max(len(logs), 1))
    cores = min(available_cores(), len(logs))
    return cores if cores > 1 and _at_least(logs, _WORTH_PROCESSES) else 1


def _at_least(logs: Iterable[LogFile], size: int) -> bool:
    total = 0
    for log in logs:
        total += size_of(log.path)
        if total >= size:
            return True
    return False


def size_of(path: Path) -> int:
    """Bytes of a file or folder; 0 for one that is gone."""
    return (stamp_of(path) or (0, 0))[0]  # gone by now: reading it says so


def in_processes(jobs: int) -> Engine:
    """Work in so many processes of this machine; with one, in this process."""
    if jobs == 1:
        return lambda work, logs: ((number, answer_of(work, log)) for number, log in enumerate(logs))
    return lambda work, logs: run_in_processes(work, logs, jobs)


def judge_many(
    source: PathsLike, reading: Reading, *, jobs: int | None = None, engine: Engine | None = None,
    on_file: OnFile | None = None, on_result: OnResult | None = None,
) -> Results:  # fmt: skip
    """Read and judge all runs of these paths, in this process or by an engine.

    Of many files, where an engine works on them, or with `on_result`, the runs of several files come back without their rows
    (`rldk.fleet.work`). Of several files, one at which an unexpected error is raised, or that killed the process that read it, is
    listed with those that could not be read. A run that `on_result` was called with may be found to be the beginning of a longer
    one in another file; it is then listed, too.
    """
    logs = [log for path in expand(source) for log in logs_at(path, reading.adapter_hint)]
    work = judge_file
    if engine is None:
        jobs = choose_jobs(logs, jobs)
        if jobs == 1 and len(logs) == 1:
            return _judge_alone(source, reading, on_file, on_result)
        if jobs == 1 and on_result is None and len(logs) <= _FEW:
            work = judge_whole
        engine = in_processes(jobs)
    results: dict[int, Result] = {}

    def read_files(logs: Sequence[LogFile]) -> Iterator[FileReport | RLDKError]:
        answers = _told(engine(partial(work, reading), logs), logs, on_file, on_result)
        for log, answer in zip(logs, _in_order(answers), strict=True):
            if isinstance(answer, JudgedFile):
                results.update((id(result.run), result) for result in answer.results)
            yield answer.report if isinstance(answer, JudgedFile) else named_error(log, answer)

    read = read_runs(
        source, adapter_hint=reading.adapter_hint, field_map=reading.field_map, lenient=True, read_files=read_files
    )  # fmt: skip
    return Results([results[id(run)] for run in read.runs], read.passed_over, read.unread)


def _judge_alone(source: PathsLike, reading: Reading, on_file: OnFile | None, on_result: OnResult | None) -> Results:
    """Judge the runs of one file, of which the bytes are counted as they are read; an unexpected error is raised."""

    def on_progress(path: Path, done: int, _total: int) -> None:
        if on_file is not None:
            on_file(path, done)

    found = judge_paths(
        source, reading.config, adapter_hint=reading.adapter_hint, field_map=reading.field_map, progress=on_progress
    )  # fmt: skip
    if on_result is not None:
        for result in found:
            on_result(result)
    return found


Answers = Iterator[tuple[int, JudgedFile | RLDKError]]


def _told(answers: Answers, logs: Sequence[LogFile], on_file: OnFile | None, on_result: OnResult | None) -> Answers:
    """The answers as they are ready, each told to those who wait for it."""
    for number, answer in answers:
        if on_file is not None:
            on_file(logs[number].path, size_of(logs[number].path))
        if on_result is not None and isinstance(answer, JudgedFile):
            for result in answer.results:
                on_result(result)
        yield number, answer


def _in_order(answers: Answers) -> Iterator[JudgedFile | RLDKError]:
    """The answers in the order of the files; those that are early wait."""
    early: dict[int, JudgedFile | RLDKError] = {}
    turn = 0
    for number, answer in answers:
        early[number] = answer
        while turn in early:
            yield early.pop(turn)
            turn += 1


def named_error(log: LogFile, error: RLDKError) -> RLDKError:
    """An error that names the file."""
    return ReadError(f"{log.path} {error}") if isinstance(error, WorkError) else error
