"""The runs of a report: judged one by one where they are few; of many, an overview, and in detail only those that are shown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError
from rldk.fleet.index import current_rows, index_path, judged_rows
from rldk.fleet.parts import mark_parts, name_rows
from rldk.fleet.row import name_of, row_of
from rldk.fleet.scan import choose_jobs, in_processes
from rldk.fleet.work import Reading
from rldk.ingest.read import LogFile, logs_at, read_log
from rldk.judge.acknowledgements import acknowledgements_of
from rldk.judge.result import Result
from rldk.judge.results import Results, judge_report
from rldk.report.case import NotJudged
from rldk.report.entry import Row, rank
from rldk.report.page import MAX_DETAILED

__all__ = ["Gathered", "gather_many", "is_many", "split"]

logger = logging.getLogger("rldk")

OnLog = Callable[[str], None]
"""Called with the name of each log that was judged."""


@dataclass(slots=True)
class Gathered:
    """The results that a page shows in detail, the rows of all other runs, and what was not judged.

    `judged` counts the logs that had to be judged for the overview, and `unchanged` those that an index knew.
    """

    results: list[Result] = field(default_factory=list)
    others: list[Row] = field(default_factory=list)
    passed_over: list[NotJudged] = field(default_factory=list)
    judged: int = 0
    unchanged: int = 0

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The name and the verdict of every run, those in detail first."""
        named = [(result.run.run_id, result.verdict) for result in self.results]
        return named + [(str(row["name"]), str(row["verdict"])) for row in self.others]


def is_many(paths: Iterable[Path], adapter_hint: str | None) -> bool:
    """Whether these paths hold more logs than a page shows in detail."""
    count = 0
    for path in paths:
        count += len(logs_at(path, adapter_hint))
        if count > MAX_DETAILED:
            return True
    return False


def split(judged: Results) -> Gathered:
    """Runs that were judged: the worst in detail, of the others what an index would keep."""
    passed = [(name_of(path), reason) for path, reason in judged.passed_over]
    if len(judged) <= MAX_DETAILED:
        return Gathered(list(judged), [], passed, len(judged))
    rows = [({**row_of(result, number), "name": result.run.run_id}, result) for number, result in enumerate(judged)]
    rows.sort(key=lambda pair: rank(pair[0]))
    found = Gathered(passed_over=passed, judged=len(judged))
    for number, (row, result) in enumerate(rows):
        if number < MAX_DETAILED or result.acknowledged:
            found.results.append(result)
        else:
            found.others.append(row)
    return found


def gather_many(paths: Sequence[Path], reading: Reading, on_log: OnLog) -> Gathered:
    """The runs of many logs. Of a folder with an index, only logs that are new or have changed are judged for the overview."""
    found = Gathered()
    logs = {path: logs_at(path, reading.adapter_hint) for path in paths}
    places = {name_of(log.path): log.path for own in logs.values() for log in own}
    rows: list[dict[str, Any]] = []
    for path in [path for path in paths if path.is_dir() and index_path(path).exists()]:
        rows += _from_index(path, reading, on_log, found)
        del logs[path]
    rows += _judged([log for own in logs.values() for log in own], reading, on_log, found)
    rows = list({(row["path"], row["number"]): row for row in rows}.values())
    if logs:
        mark_parts(rows, changed={row["path"] for row in rows})
        name_rows(rows)
    found.passed_over += [(row["path"], row["error"]) for row in rows if row.get("error")]
    found.passed_over += [(row["path"], f"its steps are the beginning of {row['part_of']}") for row in rows if row.get("part_of")]
    runs = sorted((row for row in rows if not row.get("error") and not row.get("part_of")), key=rank)
    for number, row in enumerate(runs):
        wanted = number < MAX_DETAILED or _acknowledged(row, places)
        result = _in_detail(row, places, reading) if wanted else None
        if result is None:
            found.others.append(row)
        else:
            found.results.append(result)
    return found


def _from_index(store: Path, reading: Reading, on_log: OnLog, found: Gathered) -> list[dict[str, Any]]:
    rows, done = current_rows(store, reading, on_log=lambda path, _size, _rows: on_log(path.name))
    found.judged += done.judged
    found.unchanged += done.unchanged
    return rows


def _judged(logs: Sequence[LogFile], reading: Reading, on_log: OnLog, found: Gathered) -> list[dict[str, Any]]:
    """The rows of logs that no index knows, in the order of the logs."""
    by_path: dict[Path, list[dict[str, Any]]] = {}
    for log, rows in judged_rows(in_processes(choose_jobs(logs)), reading, logs):
        by_path[log.path] = rows
        found.judged += 1
        on_log(log.path.name)
    return [row for log in logs for row in by_path[log.path]]


def _acknowledged(row: Row, places: Mapping[str, Path]) -> bool:
    """Whether something of this run was acknowledged, which an index does not know."""
    try:
        return bool(acknowledgements_of(places[row["path"]], str(row["run_id"])))
    except ReadError:
        return True  # judging it says what is wrong with the file


def _in_detail(row: Row, places: Mapping[str, Path], reading: Reading) -> Result | None:
    """Read and judge a run again; `None` where its log is gone by now, or an error is raised that nobody expected."""
    try:
        report = read_log(LogFile(places[row["path"]]), reading.adapter_hint, reading.field_map)
        result = judge_report(report, reading.config)[int(row["number"])]
    except Exception as error:  # the overview has its row; the other runs are shown
        logger.debug("%s could not be judged", row["path"], exc_info=error)
        return None
    result.run.run_id = str(row["name"])
    return result
