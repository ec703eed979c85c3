"""What a worker does with one file: read it, judge its runs, and send back what is kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rldk.fleet.head import head_of
from rldk.ingest.read import FileReport, LogFile, read_log
from rldk.judge.config import ScanConfig
from rldk.judge.result import Result
from rldk.judge.results import judge_report
from rldk.storage.copies import local_copies
from rldk.storage.places import url_of

__all__ = ["JudgedFile", "Reading", "judge_file", "judge_whole", "on_this_machine"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read and judged: the same for all files of a scan."""

    config: ScanConfig | None = None
    adapter_hint: str | None = None
    field_map: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file that was read, and the results of its runs in their order."""

    report: FileReport
    results: list[Result]


def on_this_machine(log: LogFile) -> LogFile:
    """The file; the copy of one that is elsewhere is fetched where this machine, of a cluster, does not have it yet."""
    url = None if log.path.exists() else url_of(log.path)
    if url is not None:
        local_copies(url)
    return log


def judge_whole(reading: Reading, log: LogFile) -> JudgedFile:
    """Read and judge one file; raises `ReadError` where it cannot be read."""
    report = read_log(on_this_machine(log), reading.adapter_hint, reading.field_map)
    return JudgedFile(report, judge_report(report, reading.config))


def judge_file(reading: Reading, log: LogFile) -> JudgedFile:
    """The same; its runs come without their rows, so that they can be sent to another process and kept by the thousand."""
    judged = judge_whole(reading, log)
    results = [head_of(result, number) for number, result in enumerate(judged.results)]
    return JudgedFile(replace(judged.report, runs=[result.run for result in results]), results)
