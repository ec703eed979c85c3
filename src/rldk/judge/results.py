"""Judge the runs of paths: the one way from a path to results, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, overload

from rldk.core.anomaly import Anomaly
from rldk.core.errors import ReadError, UsageError
from rldk.core.text import counted
from rldk.core.verdicts import counts_of, ranking
from rldk.ingest.paths import PathsLike
from rldk.ingest.read import FileProgress, FileReport, Ingested, read_runs, reason_for, unexpected
from rldk.judge.config import ScanConfig
from rldk.judge.coverage import CheckCoverage
from rldk.judge.incidents.incident import Incident
from rldk.judge.result import Result
from rldk.judge.scan import judge_run
from rldk.log.problems import LineProblems
from rldk.runs.run import Run, by_number_or_id
from rldk.storage.places import shown, shown_in

__all__ = ["Results", "judge_paths", "judge_report", "judge_runs"]


@dataclass(slots=True, repr=False)
class Results(Sequence[Result]):
    """The results of the runs of a path, by number or by run id.

    `verdict` is the worst of all runs; `incidents` and `anomalies` are those of all runs; `scores` and `coverage` are those of
    the worst run (`worst_run`). With one run they are its own. `passed_over` has the reason for each file that was not judged: a
    file that cannot be read is not a healthy run. Those that were asked for by name are in `unread` too.
    """

    results: list[Result] = field(default_factory=list)
    passed_over: list[tuple[Path, str]] = field(default_factory=list)
    unread: list[Path] = field(default_factory=list)

    @overload
    def __getitem__(self, which: int | str) -> Result: ...
    @overload
    def __getitem__(self, which: slice) -> list[Result]: ...
    def __getitem__(self, which: int | str | slice) -> Result | list[Result]:
        return by_number_or_id(self.results, [result.run.run_id for result in self.results], which)

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @property
    def worst_run(self) -> Result:
        """The result of the run with the worst verdict, and of those the one with most anomalies."""
        if not self.results:
            raise UsageError("No run was judged.")
        return min(self.results, key=lambda result: ranking(result.verdict, len(result.anomalies)))

    @property
    def verdict(self) -> str:
        return self.worst_run.verdict if self.results else "no_data"

    @property
    def verdicts(self) -> list[str]:
        return [result.verdict for result in self.results]

    @property
    def incidents(self) -> list[Incident]:
        return [incident for result in self.results for incident in result.incidents]

    @property
    def anomalies(self) -> list[Anomaly]:
        return [anomaly for result in self.results for anomaly in result.anomalies]

    @property
    def scores(self) -> dict[str, float]:
        return self.worst_run.scores

    @property
    def coverage(self) -> CheckCoverage:
        return self.worst_run.coverage

    def counts(self) -> dict[str, int]:
        """How many runs have each verdict, the worst first; verdicts that no run has are left out."""
        return counts_of(self.verdicts)

    def not_judged(self) -> list[dict[str, Any]]:
        """What was not judged, as the JSON of the commands has it."""
        return [{"path": shown(path), "reason": shown_in(reason)} for path, reason in self.passed_over]

    def to_dict(self) -> dict[str, Any]:
        """As `rldk scan --json` prints it."""
        return {"runs": [result.to_dict() for result in self.results], "passed_over": self.not_judged()}

    def plot(self, *names: str, **options: Any) -> Any:
        """The plots of the runs, as a `rldk.plots.Picture`: one run with its incidents marked, several drawn over each other.

        `group_by="config.lr"` draws one curve per value of a setting: the mean of its runs, with a band between them.
        """
        return import_module("rldk.plots").plot(self.results, *names, **options)

    def __repr__(self) -> str:
        if len(self.results) == 1:
            return repr(self.results[0])
        words = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items())
        return f"<Results of {counted(len(self.results), 'run')}{': ' + words if words else ''}>"

    def _repr_html_(self) -> str:
        return str(import_module("rldk.present.notebook").results_html(self))


def judge_paths(
    source: PathsLike,
    config: ScanConfig | None = None,
    *,
    adapter_hint: str | None = None,
    field_map: Mapping[str, str] | None = None,
    progress: FileProgress | None = None,
    lenient: bool = True,
) -> Results:
    """Read and judge all runs of these paths.

    Of several files, one at which an unexpected error is raised stops no other, nor, if `lenient`, one that cannot be read.
    """
    read = read_runs(
        source, adapter_hint=adapter_hint, field_map=field_map, progress=progress, lenient=lenient, lists_unexpected=True
    )  # fmt: skip
    return judge_runs(read, config)


def judge_runs(read: Ingested, config: ScanConfig | None = None) -> Results:
    """Judge all runs that were read, each with what is known of the damage to its file.

    One of several at which an error is raised that nobody expected is listed with what was not judged.
    """
    problems = {report.path: report.problems for report in read.files}
    found = Results(passed_over=list(read.passed_over), unread=list(read.unread))
    for run in read.runs:
        try:
            found.results.append(_judge_one(run, problems.get(run.path), config))
        except (UsageError, ReadError):
            raise
        except Exception as error:
            if len(read.runs) == 1:
                raise
            found.passed_over.append((run.path, reason_for(unexpected(run.path, "judged", error), run.path)))
            found.unread.append(run.path)
    return found


def judge_report(report: FileReport, config: ScanConfig | None = None) -> list[Result]:
    """Judge all runs of one file."""
    return [_judge_one(run, report.problems, config) for run in report.runs]


def _judge_one(run: Run, problems: LineProblems | None, config: ScanConfig | None) -> Result:
    if problems is not None and problems.damage:
        run.notes.append(problems.damage)
    result = judge_run(run, config)
    result.skipped_lines = problems.total if problems is not None else 0
    return result
